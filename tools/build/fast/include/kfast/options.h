// TensorOptions: dtype, device, layout and flags of a tensor to be made, each of them set or not.
#pragma once

#include <kfast/scalar.h>

namespace c10 {
inline namespace kfast_api {

struct TensorOptions {
  TensorOptions() = default;
  TensorOptions(Layout layout) : layout_(layout) {}
  // A template, so that a braced list prefers the copy constructor as it does with torch's own class.
  template <class T, class = std::enable_if_t<std::is_same_v<std::decay_t<T>, Device>>>
  TensorOptions(T&& device) : device_(device) {}
  template <class... A, class = std::enable_if_t<std::is_constructible_v<Device, A&&...>>>
  TensorOptions(A&&... arguments) : device_(Device(static_cast<A&&>(arguments)...)) {}
  TensorOptions(caffe2::TypeMeta dtype) : dtype_(dtype.toScalarType()) {}
  TensorOptions(ScalarType dtype) : dtype_(dtype) {}
  TensorOptions(MemoryFormat format) : format_(format) {}

  [[nodiscard]] TensorOptions device(std::optional<Device> device) const { return with(&TensorOptions::device_, device); }
  template <class... A>
  [[nodiscard]] TensorOptions device(A&&... arguments) const {
    return device(std::optional<Device>(std::in_place, static_cast<A&&>(arguments)...));
  }
  [[nodiscard]] TensorOptions device_index(DeviceIndex index) const { return device(kCUDA, index); }
  [[nodiscard]] TensorOptions dtype(std::optional<caffe2::TypeMeta> dtype) const {
    return with(&TensorOptions::dtype_, optTypeMetaToScalarType(dtype));
  }
  [[nodiscard]] TensorOptions dtype(std::optional<ScalarType> dtype) const { return with(&TensorOptions::dtype_, dtype); }
  template <class T>
  TensorOptions& dtype() {
    dtype_ = CppTypeToScalarType<T>::value;
    return *this;
  }
  [[nodiscard]] TensorOptions layout(std::optional<Layout> layout) const { return with(&TensorOptions::layout_, layout); }
  [[nodiscard]] TensorOptions requires_grad(std::optional<bool> on) const {
    return with(&TensorOptions::requires_grad_, on);
  }
  [[nodiscard]] TensorOptions pinned_memory(std::optional<bool> on) const { return with(&TensorOptions::pinned_, on); }
  [[nodiscard]] TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    return with(&TensorOptions::format_, f);
  }

  Device device() const noexcept { return device_.value_or(Device(kCPU)); }
  DeviceIndex device_index() const noexcept { return device().index(); }
  caffe2::TypeMeta dtype() const noexcept { return dtype_ ? caffe2::TypeMeta(*dtype_) : get_default_dtype(); }
  Layout layout() const noexcept { return layout_.value_or(kStrided); }
  bool requires_grad() const noexcept { return requires_grad_.value_or(false); }
  bool pinned_memory() const noexcept { return pinned_.value_or(false); }
  bool is_sparse() const { return layout() == kSparse; }
  bool has_device() const noexcept { return device_.has_value(); }
  bool has_dtype() const noexcept { return dtype_.has_value(); }
  bool has_layout() const noexcept { return layout_.has_value(); }
  bool has_requires_grad() const noexcept { return requires_grad_.has_value(); }
  bool has_pinned_memory() const noexcept { return pinned_.has_value(); }
  bool has_memory_format() const noexcept { return format_.has_value(); }
  std::optional<Device> device_opt() const noexcept { return device_; }
  std::optional<caffe2::TypeMeta> dtype_opt() const noexcept {
    return dtype_ ? std::optional<caffe2::TypeMeta>(caffe2::TypeMeta(*dtype_)) : std::nullopt;
  }
  std::optional<Layout> layout_opt() const noexcept { return layout_; }
  std::optional<bool> requires_grad_opt() const noexcept { return requires_grad_; }
  std::optional<bool> pinned_memory_opt() const noexcept { return pinned_; }
  std::optional<MemoryFormat> memory_format_opt() const noexcept { return format_; }

 private:
  template <class T>
  TensorOptions with(T TensorOptions::*field, T value) const {
    TensorOptions copy = *this;
    copy.*field = value;
    return copy;
  }
  std::optional<Device> device_;
  std::optional<ScalarType> dtype_;
  std::optional<Layout> layout_;
  std::optional<bool> requires_grad_;
  std::optional<bool> pinned_;
  std::optional<MemoryFormat> format_;
};

inline TensorOptions dtype(caffe2::TypeMeta dtype) { return TensorOptions().dtype(dtype); }
inline TensorOptions dtype(ScalarType dtype) { return TensorOptions().dtype(dtype); }
template <class T>
TensorOptions dtype() { return TensorOptions().dtype(CppTypeToScalarType<T>::value); }
inline TensorOptions layout(Layout layout) { return TensorOptions().layout(layout); }
inline TensorOptions device(Device device) { return TensorOptions().device(device); }
inline TensorOptions device_index(DeviceIndex index) { return TensorOptions().device_index(index); }
inline TensorOptions requires_grad(bool on = true) { return TensorOptions().requires_grad(on); }
inline TensorOptions memory_format(MemoryFormat format) { return TensorOptions().memory_format(format); }

namespace impl {
inline std::optional<MemoryFormat> check_tensor_options_and_extract_memory_format(const TensorOptions& options,
                                                                                  std::optional<MemoryFormat> format) {
  TORCH_CHECK(!options.requires_grad_opt().value_or(false),
              "Operators taking TensorOptions cannot take a TensorOptions with options.requires_grad set as true. This "
              "isn't implemented yet.");
  TORCH_CHECK(!(options.has_memory_format() && format.has_value()),
              "Cannot set memory_format both in TensorOptions and explicit argument; please delete the redundant setter.");
  return format.has_value() ? format : options.memory_format_opt();
}
}  // namespace impl

}  // namespace kfast_api
}  // namespace c10
