// c10::irange: a range of integers to loop over.
#pragma once

#include <iterator>
#include <type_traits>

namespace c10 {
inline namespace kfast_api {

template <class I>
struct integer_range {
  struct iterator {
    using iterator_category = std::input_iterator_tag;
    using value_type = I;
    using difference_type = std::ptrdiff_t;
    using pointer = I*;
    using reference = I&;
    I value;
    constexpr I operator*() const { return value; }
    constexpr iterator& operator++() {
      ++value;
      return *this;
    }
    constexpr bool operator==(const iterator& o) const { return value == o.value; }
    constexpr bool operator!=(const iterator& o) const { return value != o.value; }
  };
  constexpr iterator begin() const { return {first}; }
  constexpr iterator end() const { return {last}; }
  I first;
  I last;
};
// Empty when the end does not lie behind the beginning.
template <class A, class B, std::enable_if_t<std::is_integral_v<A> && std::is_integral_v<B>, bool> = true>
constexpr integer_range<B> irange(A begin, B end) {
  const B first = static_cast<B>(begin);
  return {first, first < end ? end : first};
}
template <class I, std::enable_if_t<std::is_integral_v<I>, bool> = true>
constexpr integer_range<I> irange(I end) {
  return {I(), I() < end ? end : I()};
}

}  // namespace kfast_api
}  // namespace c10
