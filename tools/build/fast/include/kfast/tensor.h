// at::Tensor: a counted reference to a TensorImpl. Metadata comes from the bridge; the methods that are operators come
// from the declarations in torch's own TensorBody.h, those that the source names (kfast_methods.inc, made per build).
#pragma once

#include <kfast/accessor.h>
#include <kfast/call.h>

namespace at {
inline namespace kfast_api {

class Tensor;
namespace indexing {
struct TensorIndex;
}

// What Tensor::type() gives old sources: enough for is_cuda() and for the dispatch macros.
struct DeprecatedTypeProperties {
  ScalarType type;
  DeviceType where;
  ScalarType scalarType() const { return type; }
  caffe2::TypeMeta typeMeta() const { return caffe2::TypeMeta(type); }
  bool is_cuda() const { return where == kCUDA; }
  DeviceType device_type() const { return where; }
};

class Tensor {
 public:
  Tensor() noexcept = default;
  Tensor(const Tensor& o) noexcept : impl_(o.impl_) { kf_incref(impl_); }
  Tensor(Tensor&& o) noexcept : impl_(std::exchange(o.impl_, nullptr)) {}
  ~Tensor() noexcept { reset(); }
  static Tensor steal(void* impl) noexcept {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  void* unsafeGetTensorImpl() const { return impl_; }

  Tensor& operator=(const Tensor& o) & noexcept {
    void* const next = o.impl_;  // o may be this very tensor
    kf_incref(next);
    reset();
    impl_ = next;
    return *this;
  }
  Tensor& operator=(Tensor&& o) & noexcept {
    if (this != &o) {
      reset();
      impl_ = std::exchange(o.impl_, nullptr);
    }
    return *this;
  }
  // Assigning to what an expression gives, as in x[0] = y, writes into the tensor.
  Tensor& operator=(const Scalar& v) && { return own("aten::fill_", "Scalar", v); }
  Tensor& operator=(const Tensor& o) && { return own("aten::copy_", "", o); }
  Tensor& operator=(Tensor&& o) && { return own("aten::copy_", "", static_cast<const Tensor&>(o)); }

  bool defined() const { return impl_ != nullptr; }
  void reset() noexcept {
    if (impl_) kf_decref(std::exchange(impl_, nullptr));
  }
  bool is_same(const Tensor& o) const noexcept { return impl_ == o.impl_; }
  size_t use_count() const noexcept { return static_cast<size_t>(ask(KF_USE_COUNT)); }

  int64_t dim() const { return kf_dim(impl_); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return kf_numel(impl_); }
  int64_t storage_offset() const { return kf_storage_offset(impl_); }
  IntArrayRef sizes() const { return IntArrayRef(kf_sizes(impl_), static_cast<size_t>(dim())); }
  IntArrayRef strides() const { return IntArrayRef(kf_strides(impl_), static_cast<size_t>(dim())); }
  int64_t size(int64_t d) const { return kf_size(impl_, d); }
  int64_t stride(int64_t d) const { return kf_stride(impl_, d); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(kf_dtype(impl_)); }
  caffe2::TypeMeta dtype() const { return caffe2::TypeMeta(scalar_type()); }
  size_t itemsize() const { return elementSize(scalar_type()); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  size_t nbytes() const {
    TORCH_CHECK(layout() != kSparse, "nbytes is not defined for sparse tensors.");
    return static_cast<size_t>(numel()) * itemsize();
  }
  Layout layout() const { return static_cast<Layout>(kf_layout(impl_)); }
  Device device() const { return Device::unpack(kf_device(impl_)); }
  DeviceIndex get_device() const { return device().index(); }
  bool is_cuda() const { return defined() && device().is_cuda(); }
  bool is_cpu() const { return defined() && device().is_cpu(); }
  bool is_meta() const { return ask(KF_IS_META) != 0; }
  bool is_sparse() const { return ask(KF_IS_SPARSE) != 0; }
  bool is_quantized() const { return ask(KF_IS_QUANTIZED) != 0; }
  bool is_nested() const { return ask(KF_IS_NESTED) != 0; }
  bool is_inference() const { return ask(KF_IS_INFERENCE) != 0; }
  bool is_conj() const { return ask(KF_IS_CONJ) != 0; }
  bool is_neg() const { return ask(KF_IS_NEG) != 0; }
  bool is_leaf() const { return ask(KF_IS_LEAF) != 0; }
  bool is_view() const { return ask(KF_IS_VIEW) != 0; }
  bool has_storage() const { return ask(KF_HAS_STORAGE) != 0; }
  bool is_floating_point() const { return isFloatingType(scalar_type()); }
  bool is_signed() const { return isSignedType(scalar_type()); }
  bool is_complex() const { return isComplexType(scalar_type()); }
  bool is_contiguous(MemoryFormat f = MemoryFormat::Contiguous) const {
    return kf_is_contiguous(impl_, static_cast<int32_t>(f));
  }
  bool is_non_overlapping_and_dense() const { return ask(KF_OVERLAP_FREE) != 0; }
  MemoryFormat suggest_memory_format() const { return static_cast<MemoryFormat>(ask(KF_SUGGESTED_FORMAT)); }
  TensorOptions options() const { return TensorOptions().dtype(dtype()).device(device()).layout(layout()); }
  DeprecatedTypeProperties type() const { return {scalar_type(), device().type()}; }
  std::string toString() const { return text(true); }
  int64_t _version() const { return ask(KF_VERSION); }

  void* data_ptr() const { return kf_mutable_data(impl_); }
  void* mutable_data_ptr() const { return kf_mutable_data(impl_); }
  const void* const_data_ptr() const { return kf_const_data(impl_); }
  template <class T>
  T* mutable_data_ptr() const {
    check_type<T>();
    return static_cast<T*>(kf_mutable_data(impl_));
  }
  template <class T>
  T* data_ptr() const { return mutable_data_ptr<T>(); }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    check_type<std::remove_const_t<T>>();
    return static_cast<const std::remove_const_t<T>*>(kf_const_data(impl_));
  }
  template <class T>
  T* data() const { return data_ptr<T>(); }
  Tensor data() const { return steal(kf_tensor_data(impl_, false)); }
  Tensor variable_data() const { return steal(kf_tensor_data(impl_, true)); }

  template <class T, size_t N>
  TensorAccessor<T, N> accessor() const& {
    return TensorAccessor<T, N>(pointer_for<T, N>(), kf_sizes(impl_), kf_strides(impl_));
  }
  template <class T, size_t N>
  TensorAccessor<T, N> accessor() && = delete;
  template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
  GenericPackedTensorAccessor<T, N, P, I> generic_packed_accessor() const& {
    return GenericPackedTensorAccessor<T, N, P, I>(static_cast<typename P<T>::PtrType>(pointer_for<T, N>()),
                                                   kf_sizes(impl_), kf_strides(impl_));
  }
  template <class T, size_t N, template <class U> class P = DefaultPtrTraits, class I = int64_t>
  GenericPackedTensorAccessor<T, N, P, I> packed_accessor() const& {
    return generic_packed_accessor<T, N, P, I>();
  }
  template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
  PackedTensorAccessor32<T, N, P> packed_accessor32() const& {
    TORCH_CHECK(numel() <= INT32_MAX,
                "numel needs to be smaller than int32_t max; otherwise, please use packed_accessor64");
    return generic_packed_accessor<T, N, P, int32_t>();
  }
  template <class T, size_t N, template <class U> class P = DefaultPtrTraits>
  PackedTensorAccessor64<T, N, P> packed_accessor64() const& {
    return generic_packed_accessor<T, N, P, int64_t>();
  }

  Tensor contiguous(MemoryFormat f = MemoryFormat::Contiguous) const {
    return is_contiguous(f) ? *this : run("aten::contiguous", "", f);
  }
  bool requires_grad() const { return ask(KF_REQUIRES_GRAD) != 0; }
  const Tensor& requires_grad_(bool on = true) const {
    kf_set_requires_grad(impl_, on);
    return *this;
  }
  const Tensor& set_requires_grad(bool on) const { return requires_grad_(on); }
  Tensor grad() const { return steal(kf_grad(impl_)); }

  Tensor to_options(const TensorOptions& o) const {
    static void* const op = kf_find_operator("aten::to", "dtype_layout");
    return kfast::call<Tensor>(op, *this, optTypeMetaToScalarType(o.dtype_opt()), o.layout_opt(), o.device_opt(),
                               o.pinned_memory_opt());
  }
  Tensor cpu() const { return to_options(options().device(kCPU)); }
  Tensor cuda() const { return to_options(options().device(kCUDA)); }
  Tensor meta() const { return to_options(options().device(kMeta)); }
  Tensor toType(ScalarType t) const { return to_options(options().dtype(t)); }

  Scalar item() const;
  template <class T>
  T item() const { return item().to<T>(); }

  Tensor operator~() const { return run("aten::bitwise_not", ""); }
  Tensor operator-() const { return run("aten::neg", ""); }
#define KFAST_ASSIGN(op, name)                                                       \
  Tensor& operator op(const Tensor& o) { return own("aten::" name, "Tensor", o); }   \
  Tensor& operator op(const Scalar& o) { return own("aten::" name, "Scalar", o); }
  KFAST_ASSIGN(+=, "add_")
  KFAST_ASSIGN(-=, "sub_")
  KFAST_ASSIGN(*=, "mul_")
  KFAST_ASSIGN(/=, "div_")
#undef KFAST_ASSIGN
  Tensor operator[](int64_t index) const { return run("aten::select", "int", int64_t{0}, index); }
  Tensor operator[](const Scalar& index) const {
    TORCH_CHECK_INDEX(index.isIntegral(false), "Can only index tensors with integral scalars");
    return (*this)[index.toLong()];
  }

#include <kfast_methods.inc>

 private:
  template <class T>
  void check_type() const {
    constexpr ScalarType wanted = CppTypeToScalarType<T>::value;
    TORCH_CHECK(scalar_type() == wanted, "expected scalar type ", c10::toString(wanted), " but found ",
                c10::toString(scalar_type()));
  }
  template <class T, size_t N>
  T* pointer_for() const {
    static_assert(N > 0, "accessor is used for indexing tensor, for scalars use *data_ptr<T>()");
    TORCH_CHECK(dim() == static_cast<int64_t>(N), "TensorAccessor expected ", N, " dims but tensor has ", dim());
    if constexpr (std::is_const_v<T>) return const_data_ptr<T>();
    else return mutable_data_ptr<T>();
  }
  int64_t ask(kf_query query) const { return kf_query_tensor(impl_, query); }
  std::string text(bool type_only) const {
    char* raw = kf_tensor_text(impl_, type_only);
    std::string out(raw);
    kf_free(raw);
    return out;
  }
  // Operators whose names no source spells out: looked up at each call, which is short beside the call itself.
  template <class... A>
  Tensor run(const char* name, const char* overload, const A&... a) const {
    return kfast::call<Tensor>(kf_find_operator(name, overload), *this, a...);
  }
  template <class... A>
  Tensor& own(const char* name, const char* overload, const A&... a) {
    kfast::call<Tensor>(kf_find_operator(name, overload), static_cast<const Tensor&>(*this), a...);
    return *this;
  }
  friend void append(std::string& out, const Tensor& t) { out += t.text(false); }
  void* impl_ = nullptr;
};

}  // namespace kfast_api
}  // namespace at
