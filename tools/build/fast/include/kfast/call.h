// Calls of torch's operators through the bridge: C++ arguments become kf_values, and results come back typed.
#pragma once

#include <kfast/options.h>

#include <tuple>
#include <utility>

namespace at {
using namespace c10;
inline namespace kfast_api {
class Tensor;
using TensorList = ArrayRef<Tensor>;
using ITensorList = TensorList;
using ITensorListRef = TensorList;
// Only ever passed as "none": the random generator of the device is used.
struct Generator {
  Generator() = delete;
};
}  // namespace kfast_api
}  // namespace at

namespace kfast {

inline kf_value tagged(int32_t tag, int64_t i) {
  kf_value v{};
  v.tag = tag;
  v.i = i;
  return v;
}
inline kf_value listed(int32_t tag, const void* pointer, size_t n) {
  kf_value v{};
  v.tag = tag;
  v.n = static_cast<int64_t>(n);
  v.pointer = pointer;
  return v;
}

template <class T>
struct Argument;  // no such operator argument here: the stock route takes the source

template <int32_t tag, class T>
struct Tagged {
  explicit Tagged(T v) : value(tagged(tag, static_cast<int64_t>(v))) {}
  kf_value value;
};
template <>
struct Argument<int64_t> : Tagged<KF_INT, int64_t> { using Tagged::Tagged; };
template <>
struct Argument<bool> : Tagged<KF_BOOL, bool> { using Tagged::Tagged; };
template <>
struct Argument<c10::ScalarType> : Tagged<KF_INT, c10::ScalarType> { using Tagged::Tagged; };
template <>
struct Argument<c10::Layout> : Tagged<KF_INT, c10::Layout> { using Tagged::Tagged; };
template <>
struct Argument<c10::MemoryFormat> : Tagged<KF_INT, c10::MemoryFormat> { using Tagged::Tagged; };
template <>
struct Argument<double> {
  explicit Argument(double v) : value(tagged(KF_DOUBLE, 0)) { value.d = v; }
  kf_value value;
};
template <>
struct Argument<c10::Device> {
  explicit Argument(c10::Device v) : value(tagged(KF_DEVICE, v.pack())) {}
  kf_value value;
};
template <>
struct Argument<c10::Scalar> {
  explicit Argument(const c10::Scalar& v) : value(v.value()) {}
  kf_value value;
};
template <>
struct Argument<std::string_view> {
  explicit Argument(std::string_view v) : value(listed(KF_STRING, v.data(), v.size())) {}
  kf_value value;
};
template <>
struct Argument<c10::ArrayRef<int64_t>> {
  explicit Argument(c10::ArrayRef<int64_t> v) : value(listed(KF_INTS, v.data(), v.size())) {}
  kf_value value;
};
template <>
struct Argument<c10::ArrayRef<double>> {
  explicit Argument(c10::ArrayRef<double> v) : value(listed(KF_DOUBLES, v.data(), v.size())) {}
  kf_value value;
};
template <size_t N>
struct Argument<std::array<bool, N>> {
  explicit Argument(const std::array<bool, N>& v) : value(listed(KF_BOOLS, v.data(), N)) {}
  kf_value value;
};
template <>
struct Argument<c10::ArrayRef<c10::Scalar>> {
  explicit Argument(c10::ArrayRef<c10::Scalar> v) {
    for (const auto& s : v) items.push_back(s.value());
    value = listed(KF_SCALARS, items.data(), items.size());
  }
  std::vector<kf_value> items;
  kf_value value;
};
template <>
struct Argument<c10::OptionalArrayRef<int64_t>> {
  explicit Argument(const c10::OptionalArrayRef<int64_t>& v)
      : value(v ? listed(KF_INTS, v->data(), v->size()) : tagged(KF_NONE, 0)) {}
  kf_value value;
};
template <>
struct Argument<std::optional<at::Generator>> {
  explicit Argument(const std::optional<at::Generator>&) : value(tagged(KF_NONE, 0)) {}
  kf_value value;
};
template <class T>
struct Argument<std::optional<T>> {
  explicit Argument(const std::optional<T>& v) {
    if (v) held.emplace(*v);
    value = held ? held->value : tagged(KF_NONE, 0);
  }
  std::optional<Argument<T>> held;
  kf_value value;
};

// A result of an operator, taken out of its kf_value.
template <class T>
struct Result;
template <>
struct Result<int64_t> {
  static int64_t take(kf_value& v) { return v.i; }
};
template <>
struct Result<bool> {
  static bool take(kf_value& v) { return v.i != 0; }
};
template <>
struct Result<double> {
  static double take(kf_value& v) { return v.d; }
};
template <>
struct Result<c10::ScalarType> {
  static c10::ScalarType take(kf_value& v) { return static_cast<c10::ScalarType>(v.i); }
};
template <>
struct Result<c10::Scalar> {
  static c10::Scalar take(kf_value& v) {
    if (v.tag == KF_INT) v.tag = KF_SCALAR_INT;
    if (v.tag == KF_DOUBLE) v.tag = KF_SCALAR_DOUBLE;
    if (v.tag == KF_BOOL) v.tag = KF_SCALAR_BOOL;
    return c10::Scalar(v);
  }
};

// The tensors that an in-place or out variant hands back: its own arguments that are not const.
template <class T>
void collect(std::vector<at::Tensor*>& out, T&& argument) {
  if constexpr (std::is_same_v<T, at::Tensor&>) out.push_back(&argument);
}

// The list lives as long as the call expression, and so does what its values point to.
inline void invoke(void* op, std::initializer_list<kf_value> arguments, kf_value* results, size_t count) {
  kf_call_operator(op, arguments.begin(), arguments.size(), results, count);
}
template <class A>
using ArgumentFor = Argument<std::remove_cv_t<std::remove_reference_t<A>>>;

template <class R>
struct Call {
  template <class... A>
  static R run(void* op, A&&... a) {
    kf_value result;
    invoke(op, {ArgumentFor<A>(a).value...}, &result, 1);
    return Result<R>::take(result);
  }
};
template <>
struct Call<void> {
  template <class... A>
  static void run(void* op, A&&... a) {
    invoke(op, {ArgumentFor<A>(a).value...}, nullptr, 0);
  }
};
template <>
struct Call<at::Tensor&> {
  template <class... A>
  static at::Tensor& run(void* op, A&&... a) {
    invoke(op, {ArgumentFor<A>(a).value...}, nullptr, 0);
    std::vector<at::Tensor*> out;
    (collect<A>(out, static_cast<A&&>(a)), ...);
    return *out[0];
  }
};
template <class... R>
struct Call<std::tuple<R...>> {
  template <class... A>
  static std::tuple<R...> run(void* op, A&&... a) {
    kf_value results[sizeof...(R)];
    invoke(op, {ArgumentFor<A>(a).value...}, results, sizeof...(R));
    size_t i = 0;
    return std::tuple<R...>{Result<R>::take(results[i++])...};
  }
};
template <class... R>
struct Call<std::tuple<at::Tensor&, R&...>> {
  template <class... A>
  static std::tuple<at::Tensor&, R&...> run(void* op, A&&... a) {
    invoke(op, {ArgumentFor<A>(a).value...}, nullptr, 0);
    std::vector<at::Tensor*> out;
    (collect<A>(out, static_cast<A&&>(a)), ...);
    return refer(out, std::make_index_sequence<1 + sizeof...(R)>());
  }
  template <size_t... I>
  static std::tuple<at::Tensor&, R&...> refer(std::vector<at::Tensor*>& v, std::index_sequence<I...>) {
    return std::tuple<at::Tensor&, R&...>(*v[I]...);
  }
};
template <class R, class... A>
R call(void* op, A&&... a) {
  return Call<R>::run(op, static_cast<A&&>(a)...);
}

}  // namespace kfast
