// at::acc_type and at::opmath_type: the types that sums and intermediate results of a dtype are kept in.
#pragma once

#include <kfast/types.h>

namespace at {
inline namespace kfast_api {

template <class T>
constexpr bool is_reduced = std::is_same_v<T, ::c10::Half> || std::is_same_v<T, ::c10::BFloat16>;

template <class T>
struct OpMathType {
  using type = std::conditional_t<is_reduced<T>, float, T>;
};
template <class T>
using opmath_type = typename OpMathType<T>::type;

// On the CPU a sum of floats is a double; integers are summed as int64 everywhere.
template <class T, bool cuda>
struct AccumulateType {
  static_assert(is_reduced<T> || std::is_arithmetic_v<T>);
  using type = std::conditional_t<
      is_reduced<T>, float,
      std::conditional_t<std::is_same_v<T, bool>, bool,
                         std::conditional_t<std::is_integral_v<T>, int64_t,
                                            std::conditional_t<std::is_same_v<T, float> && cuda, float, double>>>>;
};
template <class T, bool cuda>
using acc_type = typename AccumulateType<T, cuda>::type;

}  // namespace kfast_api
}  // namespace at
