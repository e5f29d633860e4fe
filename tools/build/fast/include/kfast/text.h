// Message text without iostreams: what operator<< would print with its default format.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace kfast {

inline void append(std::string& out, const char* text) { out += text; }
inline void append(std::string& out, const std::string& text) { out += text; }
inline void append(std::string& out, std::string_view text) { out += text; }
inline void append(std::string& out, char c) { out += c; }
inline void append(std::string& out, signed char c) { out += static_cast<char>(c); }
inline void append(std::string& out, unsigned char c) { out += static_cast<char>(c); }

template <class T, std::enable_if_t<std::is_integral_v<T> && (sizeof(T) > 1 || std::is_same_v<T, bool>), int> = 0>
void append(std::string& out, T value) {
  out += std::to_string(value);
}
template <class T, std::enable_if_t<std::is_floating_point_v<T>, int> = 0>
void append(std::string& out, T value) {
  char buffer[40];
  std::snprintf(buffer, sizeof buffer, "%g", static_cast<double>(value));
  out += buffer;
}
template <class T, std::enable_if_t<std::is_enum_v<T> && std::is_convertible_v<T, int>, int> = 0>
void append(std::string& out, T value) {
  out += std::to_string(static_cast<std::underlying_type_t<T>>(value));
}
template <class T>
void append(std::string& out, const T* pointer) {
  char buffer[24];
  std::snprintf(buffer, sizeof buffer, "%p", static_cast<const void*>(pointer));
  out += buffer;
}

}  // namespace kfast

namespace c10 {
inline namespace kfast_api {
template <class... Parts>
std::string str(const Parts&... parts) {
  using ::kfast::append;
  std::string out;
  (append(out, parts), ...);
  return out;
}
}  // namespace kfast_api
}  // namespace c10
