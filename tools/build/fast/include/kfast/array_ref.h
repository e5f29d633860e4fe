// ArrayRef and OptionalArrayRef: views of int64_t and other arrays, with the conversions that torch's have.
#pragma once

#include <kfast/error.h>

#include <array>
#include <initializer_list>
#include <optional>
#include <vector>

namespace c10 {
inline namespace kfast_api {

template <class T>
class ArrayRef final {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  using size_type = size_t;

  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end) : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& v) : data_(v.data()), size_(v.size()) {
    static_assert(!std::is_same_v<T, bool>, "ArrayRef<bool> cannot be made from a vector<bool>");
  }
  template <size_t N>
  constexpr ArrayRef(const std::array<T, N>& a) : data_(a.data()), size_(N) {}
  template <size_t N>
  constexpr ArrayRef(const T (&a)[N]) : data_(a), size_(N) {}
  constexpr ArrayRef(const std::initializer_list<T>& list)
      : data_(list.begin() == list.end() ? nullptr : list.begin()), size_(list.size()) {}

  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T* cbegin() const { return data_; }
  constexpr const T* cend() const { return data_ + size_; }
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  const T& front() const {
    TORCH_CHECK(!empty(), "ArrayRef: attempted to access front() of empty list");
    return data_[0];
  }
  const T& back() const {
    TORCH_CHECK(!empty(), "ArrayRef: attempted to access back() of empty list");
    return data_[size_ - 1];
  }
  const T& at(size_t i) const {
    TORCH_CHECK(i < size_, "ArrayRef: invalid index Index = ", i, "; Length = ", size_);
    return data_[i];
  }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }
  ArrayRef slice(size_t from, size_t count) const {
    TORCH_CHECK(from + count <= size_, "ArrayRef: invalid slice, N = ", from, "; M = ", count, "; size = ", size_);
    return {data_ + from, count};
  }
  ArrayRef slice(size_t from) const {
    TORCH_CHECK(from <= size_, "ArrayRef: invalid slice, N = ", from, "; size = ", size_);
    return slice(from, size_ - from);
  }
  std::vector<T> vec() const { return std::vector<T>(begin(), end()); }

  template <class U>
  std::enable_if_t<std::is_same_v<U, T>, ArrayRef>& operator=(U&&) = delete;
  template <class U>
  std::enable_if_t<std::is_same_v<U, T>, ArrayRef>& operator=(std::initializer_list<U>) = delete;

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};

using IntArrayRef = ArrayRef<int64_t>;

template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) { return a.equals(b); }
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) { return !a.equals(b); }
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) { return ArrayRef<T>(a).equals(b); }
template <class T>
bool operator!=(const std::vector<T>& a, ArrayRef<T> b) { return !ArrayRef<T>(a).equals(b); }
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) { return a.equals(ArrayRef<T>(b)); }
template <class T>
bool operator!=(ArrayRef<T> a, const std::vector<T>& b) { return !a.equals(ArrayRef<T>(b)); }

template <class T>
void append(std::string& out, ArrayRef<T> list) {
  using ::kfast::append;
  out += '[';
  for (size_t i = 0; i < list.size(); ++i) {
    if (i) out += ", ";
    append(out, list[i]);
  }
  out += ']';
}

template <class T>
class OptionalArrayRef final {
  template <class U>
  static constexpr bool fits = !std::is_same_v<std::decay_t<U>, OptionalArrayRef> &&
      std::is_constructible_v<ArrayRef<T>, U&&> && std::is_convertible_v<U&&, ArrayRef<T>> &&
      !std::is_convertible_v<U&&, T>;

 public:
  constexpr OptionalArrayRef() = default;
  constexpr OptionalArrayRef(std::nullopt_t) {}
  constexpr OptionalArrayRef(const std::optional<ArrayRef<T>>& value) : value_(value) {}
  constexpr OptionalArrayRef(const T& one) : value_(one) {}
  template <class U = ArrayRef<T>, std::enable_if_t<fits<U>, bool> = false>
  constexpr OptionalArrayRef(U&& value) : value_(static_cast<U&&>(value)) {}
  constexpr OptionalArrayRef(const std::initializer_list<T>& list) : value_(ArrayRef<T>(list)) {}

  constexpr explicit operator bool() const { return value_.has_value(); }
  constexpr bool has_value() const { return value_.has_value(); }
  const ArrayRef<T>& value() const { return value_.value(); }
  const ArrayRef<T>& operator*() const { return value_.value(); }
  const ArrayRef<T>* operator->() const { return &value_.value(); }

 private:
  std::optional<ArrayRef<T>> value_;
};
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

template <class T>
using optional = std::optional<T>;
using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using string_view = std::string_view;

}  // namespace kfast_api
}  // namespace c10
