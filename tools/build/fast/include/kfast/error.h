// Errors and checks. They are thrown by the bridge, as torch's own types.
#pragma once

#include <kfast/bridge.h>
#include <kfast/text.h>

#include <exception>

#pragma GCC visibility push(default)
namespace c10 {
// torch's own class, as far as a handler needs it: only the bridge makes one.
class Error : public std::exception {
 public:
  Error() = delete;
  const char* what() const noexcept override;
  const char* what_without_backtrace() const noexcept { return kf_error_text(this); }
  std::string msg() const { return kf_error_text(this); }
};
}  // namespace c10
#pragma GCC visibility pop

namespace kfast {
template <class... Parts>
[[noreturn]] __attribute__((noinline, cold)) void fail(int kind, const char* file, int line, const char* function,
                                                       const Parts&... parts) {
  const std::string text = c10::str(parts...);
  kf_raise(kind, file, line, function, text.data(), text.size());
}
// What is said when the check itself says nothing.
struct Otherwise {
  const char* text;
};
template <class First, class... Rest>
[[noreturn]] __attribute__((noinline, cold)) void fail_check(int kind, const char* file, int line, const char* function,
                                                             Otherwise, const First& first, const Rest&... rest) {
  fail(kind, file, line, function, first, rest...);
}
[[noreturn]] __attribute__((noinline, cold)) inline void fail_check(int kind, const char* file, int line,
                                                                    const char* function, Otherwise otherwise) {
  fail(kind, file, line, function, otherwise.text);
}
template <class... Parts>
void warn(const char* file, int line, const char* function, const Parts&... parts) {
  const std::string text = c10::str(parts...);
  kf_warn(file, line, function, text.data(), text.size());
}
}  // namespace kfast

#define KFAST_CHECK(kind, cond, ...)                                                                                   \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                                                               \
    ::kfast::fail_check(                                                                                               \
        kind, __FILE__, __LINE__, __func__,                                                                            \
        ::kfast::Otherwise{"Expected " #cond " to be true, but got false.  (Could this error message be improved?  "   \
                           "If so, please report an enhancement request to PyTorch.)"},                                \
        ##__VA_ARGS__);                                                                                                \
  }
#define TORCH_CHECK(cond, ...) KFAST_CHECK(KF_RUNTIME, cond, ##__VA_ARGS__)
#define TORCH_CHECK_INDEX(cond, ...) KFAST_CHECK(KF_INDEX, cond, ##__VA_ARGS__)
#define TORCH_CHECK_VALUE(cond, ...) KFAST_CHECK(KF_VALUE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_TYPE(cond, ...) KFAST_CHECK(KF_TYPE, cond, ##__VA_ARGS__)
#define TORCH_CHECK_NOT_IMPLEMENTED(cond, ...) KFAST_CHECK(KF_NOT_IMPLEMENTED, cond, ##__VA_ARGS__)
#define TORCH_CHECK_LINALG(cond, ...) KFAST_CHECK(KF_LINALG, cond, ##__VA_ARGS__)
#define TORCH_INTERNAL_ASSERT(cond, ...)                                                                               \
  if (__builtin_expect(static_cast<bool>(!(cond)), 0)) {                                                               \
    ::kfast::fail(KF_RUNTIME, __FILE__, __LINE__, __func__, #cond " INTERNAL ASSERT FAILED at \"", __FILE__, "\":",    \
                  __LINE__, ", please report a bug to PyTorch. ", ##__VA_ARGS__);                                      \
  }
#ifdef NDEBUG
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) \
  while (false)                               \
  TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#else
#define TORCH_INTERNAL_ASSERT_DEBUG_ONLY(...) TORCH_INTERNAL_ASSERT(__VA_ARGS__)
#endif
#define AT_ASSERTM(cond, ...) TORCH_CHECK(cond, ##__VA_ARGS__)
#define AT_ASSERT(...)                        \
  do {                                        \
    TORCH_INTERNAL_ASSERT(__VA_ARGS__);       \
  } while (false)
#define AT_ERROR(...) ::kfast::fail(KF_RUNTIME, __FILE__, __LINE__, __func__, ##__VA_ARGS__)
#define TORCH_WARN(...) ::kfast::warn(__FILE__, __LINE__, __func__, ##__VA_ARGS__)
#define TORCH_WARN_ONCE(...)                                                \
  do {                                                                      \
    static const bool kfast_warned = (TORCH_WARN(__VA_ARGS__), true);       \
    static_cast<void>(kfast_warned);                                        \
  } while (false)
#define KFAST_CHECK_OP(a, b, op)                                                                \
  do {                                                                                          \
    const auto& kfast_a = (a);                                                                  \
    const auto& kfast_b = (b);                                                                  \
    TORCH_CHECK(kfast_a op kfast_b, "Check failed: " #a " " #op " " #b " (", kfast_a, " vs. ",  \
                kfast_b, "). ");                                                                \
  } while (false)
#define TORCH_CHECK_EQ(a, b) KFAST_CHECK_OP(a, b, ==)
#define TORCH_CHECK_NE(a, b) KFAST_CHECK_OP(a, b, !=)
#define TORCH_CHECK_LT(a, b) KFAST_CHECK_OP(a, b, <)
#define TORCH_CHECK_LE(a, b) KFAST_CHECK_OP(a, b, <=)
#define TORCH_CHECK_GT(a, b) KFAST_CHECK_OP(a, b, >)
#define TORCH_CHECK_GE(a, b) KFAST_CHECK_OP(a, b, >=)
