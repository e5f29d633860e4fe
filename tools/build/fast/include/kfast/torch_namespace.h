// What lives in namespace torch itself: names of dtypes, guards, from_blob and tensor(), wrapping of bound functions.
#pragma once

#include <kfast/tensor_call.h>

namespace at {
inline namespace kfast_api {
// A guard that the bridge holds; which one is the template's number.
template <int kind>
struct HeldGuard {
  explicit HeldGuard(bool on = false) { kf_enter(&held, kind, on); }
  HeldGuard(const HeldGuard&) = delete;
  HeldGuard& operator=(const HeldGuard&) = delete;
  ~HeldGuard() { kf_leave(&held); }
  kf_guard held;
};
struct NoGradGuard : HeldGuard<0> {
  NoGradGuard() : HeldGuard(false) {}
};
struct AutoGradMode : HeldGuard<0> {
  explicit AutoGradMode(bool on) : HeldGuard(on) {}
};
struct AutoDispatchBelowADInplaceOrView : HeldGuard<1> {};
struct AutoDispatchBelowAutograd : HeldGuard<2> {};
struct InferenceMode : HeldGuard<3> {
  explicit InferenceMode(bool on = true) : HeldGuard(on) {}
};
struct GradMode {
  static bool is_enabled() { return kf_grad_mode(-1); }
  static void set_enabled(bool on) { kf_grad_mode(on); }
};
namespace Reduction {
enum Reduction { None, Mean, Sum, END };
}
// Memory that C++ owns as a tensor; with a deleter, which is called when the last tensor on it is gone.
inline Tensor blob(void* data, IntArrayRef sizes, const IntArrayRef* strides, const TensorOptions& o,
                   void (*deleter)(void*) = nullptr, void* context = nullptr) {
  TORCH_CHECK(!strides || strides->size() == sizes.size(), "from_blob: sizes and strides differ in length");
  const auto d = o.device_opt();
  return Tensor::steal(kf_from_blob(data, sizes.data(), sizes.size(), strides ? strides->data() : nullptr,
                                    d.has_value(), d ? d->pack() : 0, static_cast<int32_t>(o.dtype().toScalarType()),
                                    deleter, context));
}
template <class F, class = decltype(std::declval<const F&>()(static_cast<void*>(nullptr)))>
struct Deleting {
  static void run(void* self) {
    auto* d = static_cast<Deleting*>(self);
    d->deleter(d->data);
    delete d;
  }
  F deleter;
  void* data;
};
inline Tensor from_blob(void* data, IntArrayRef sizes, const TensorOptions& o = {}) {
  return blob(data, sizes, nullptr, o);
}
inline Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const TensorOptions& o = {}) {
  return blob(data, sizes, &strides, o);
}
template <class F, class D = Deleting<F>>
Tensor from_blob(void* data, IntArrayRef sizes, const F& deleter, const TensorOptions& o = {}) {
  return blob(data, sizes, nullptr, o, &D::run, new D{deleter, data});
}
template <class F, class D = Deleting<F>>
Tensor from_blob(void* data, IntArrayRef sizes, IntArrayRef strides, const F& deleter, const TensorOptions& o = {}) {
  return blob(data, sizes, &strides, o, &D::run, new D{deleter, data});
}
}  // namespace kfast_api
}  // namespace at

namespace c10 {
inline IntArrayRef fromIntArrayRefSlow(IntArrayRef list) { return list; }
using at::AutoGradMode;
using at::GradMode;
using at::InferenceMode;
using at::NoGradGuard;
}  // namespace c10

namespace torch {
using namespace at;
using Dtype = at::ScalarType;
constexpr auto kUInt8 = at::kByte, kInt8 = at::kChar, kInt16 = at::kShort, kInt32 = at::kInt, kInt64 = at::kLong;
constexpr auto kFloat16 = at::kHalf, kFloat32 = at::kFloat, kFloat64 = at::kDouble;
constexpr auto kU8 = kUInt8, kI8 = kInt8, kI16 = kInt16, kI32 = kInt32, kI64 = kInt64;
constexpr auto kF16 = kFloat16, kF32 = kFloat32, kF64 = kFloat64;

// torch::tensor for a number, or a list of them. As in Python: integers make int64, floating numbers the default dtype.
inline namespace kfast_api {
template <class T>
at::Tensor tensor_of(const T* values, at::IntArrayRef sizes, size_t n, const at::TensorOptions& options) {
  static_assert(std::is_arithmetic_v<T>, "torch::tensor takes numbers here");
  using Wide = std::conditional_t<std::is_floating_point_v<T>, double, int64_t>;
  std::vector<Wide> wide(values, values + n);
  const auto natural = std::is_same_v<T, bool> ? at::kBool
      : std::is_integral_v<T>                  ? at::kLong
                                               : at::get_default_dtype_as_scalartype();
  const auto dtype = options.has_dtype() ? options.dtype().toScalarType() : natural;
  static_assert(sizeof(Wide) == 8);
  const auto source = std::is_floating_point_v<T> ? at::kDouble : at::kLong;
  // Copied on the CPU to its own memory and dtype, then moved.
  at::Tensor made = at::from_blob(wide.data(), sizes, at::TensorOptions(source));
  static void* const to = kf_find_operator("aten::to", "dtype");
  made = kfast::call<at::Tensor>(to, made, dtype, false, true);
  if (options.has_device()) made = made.to_options(at::TensorOptions(options.device()));
  return at::Tensor::steal(kf_make_variable(made.unsafeGetTensorImpl(), options.requires_grad()));
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, bool> = true>
at::Tensor tensor(T value, const at::TensorOptions& options = {}) {
  return tensor_of(&value, {}, 1, options);
}
template <class T, std::enable_if_t<std::is_arithmetic_v<T>, bool> = true>
at::Tensor tensor(std::initializer_list<T> values, const at::TensorOptions& options = {}) {
  const int64_t n = static_cast<int64_t>(values.size());
  return tensor_of(values.begin(), n, values.size(), options);
}
template <class T>
at::Tensor tensor(at::ArrayRef<T> values, const at::TensorOptions& options = {}) {
  const int64_t n = static_cast<int64_t>(values.size());
  return tensor_of(values.data(), n, values.size(), options);
}
template <class T>
at::Tensor tensor(const std::vector<T>& values, const at::TensorOptions& options = {}) {
  return tensor(at::ArrayRef<T>(values), options);
}
}  // namespace kfast_api

namespace cuda {
inline namespace kfast_api {
inline size_t device_count() { return static_cast<size_t>(kf_cuda_device_count()); }
inline bool is_available() { return device_count() > 0; }
inline void synchronize(int64_t device = -1) { kf_cuda_synchronize(static_cast<int32_t>(device)); }
}  // namespace kfast_api
}  // namespace cuda

namespace autograd {
using Variable = at::Tensor;
inline at::Tensor make_variable(const at::Tensor& t, bool requires_grad) {
  return at::Tensor::steal(kf_make_variable(t.unsafeGetTensorImpl(), requires_grad));
}
}  // namespace autograd

inline namespace kfast_api {
// A function to bind whose errors and warnings are to be torch's.
template <class F>
struct Wrapped {
  F function;
};
template <class R, class... P>
Wrapped<R (*)(P...)> wrap_pybind_function(R (*function)(P...)) { return {function}; }
}  // namespace kfast_api
}  // namespace torch
