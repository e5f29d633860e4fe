// Tensors as arguments and results of operators, and the arithmetic operators on tensors.
#pragma once

#include <kfast/tensor.h>

namespace kfast {

template <>
struct Argument<at::Tensor> {
  explicit Argument(const at::Tensor& t) {
    value = kf_value{};
    value.tag = KF_TENSOR;
    value.tensor = t.unsafeGetTensorImpl();
  }
  kf_value value;
};
template <>
struct Argument<c10::ArrayRef<at::Tensor>> {
  explicit Argument(c10::ArrayRef<at::Tensor> list) {
    for (const auto& t : list) items.push_back(t.unsafeGetTensorImpl());
    value = listed(KF_TENSORS, items.data(), items.size());
  }
  std::vector<void*> items;
  kf_value value;
};
template <>
struct Argument<std::vector<std::optional<at::Tensor>>> {
  explicit Argument(const std::vector<std::optional<at::Tensor>>& list) {
    for (const auto& t : list) items.push_back(t ? t->unsafeGetTensorImpl() : nullptr);
    value = listed(KF_OPTIONAL_TENSORS, items.data(), items.size());
  }
  std::vector<void*> items;
  kf_value value;
};
template <>
struct Result<at::Tensor> {
  static at::Tensor take(kf_value& v) { return at::Tensor::steal(v.tensor); }
};
template <>
struct Result<std::vector<at::Tensor>> {
  static std::vector<at::Tensor> take(kf_value& v) {
    std::vector<at::Tensor> out;
    out.reserve(static_cast<size_t>(v.n));
    void* const* items = static_cast<void* const*>(v.pointer);
    for (int64_t i = 0; i < v.n; ++i) out.push_back(at::Tensor::steal(items[i]));
    kf_free(const_cast<void*>(v.pointer));
    return out;
  }
};

}  // namespace kfast

namespace at {
inline namespace kfast_api {

inline Scalar Tensor::item() const {
  static void* const op = kf_find_operator("aten::item", "");
  return kfast::call<Scalar>(op, *this);
}

namespace detail {
template <class Other>
Tensor binary(const char* name, const Tensor& x, const Other& y) {
  return kfast::call<Tensor>(kf_find_operator(name, std::is_same_v<Other, Tensor> ? "Tensor" : "Scalar"), x, y);
}
// A number on the left of an operation that does not commute becomes a tensor like the right one, as torch does it.
inline Tensor filled_like(const Scalar& x, const Tensor& y) {
  Tensor t = kfast::call<Tensor>(kf_find_operator("aten::empty_like", ""), y, std::optional<ScalarType>(),
                                 std::optional<Layout>(), std::optional<Device>(), std::optional<bool>(),
                                 std::optional<MemoryFormat>(MemoryFormat::Preserve));
  static_cast<Tensor&&>(t) = x;
  return t;
}
inline Tensor reversed(const char* name, const Scalar& x, const Tensor& y) {
  Tensor t = filled_like(x, y);
  binary(name, t, y);
  return t;
}
}  // namespace detail

#define KFAST_BINARY(op, name, reverse)                                                                     \
  inline Tensor operator op(const Tensor& x, const Tensor& y) { return detail::binary("aten::" name, x, y); } \
  inline Tensor operator op(const Tensor& x, const Scalar& y) { return detail::binary("aten::" name, x, y); } \
  inline Tensor operator op(const Scalar& x, const Tensor& y) { return reverse; }
KFAST_BINARY(+, "add", detail::binary("aten::add", y, x))
KFAST_BINARY(*, "mul", detail::binary("aten::mul", y, x))
KFAST_BINARY(-, "sub", detail::reversed("aten::sub_", x, y))
KFAST_BINARY(/, "div", detail::reversed("aten::div_", x, y))
KFAST_BINARY(%, "remainder", detail::reversed("aten::remainder_", x, y))
KFAST_BINARY(&, "bitwise_and", detail::binary("aten::bitwise_and", y, x))
KFAST_BINARY(|, "bitwise_or", detail::binary("aten::bitwise_or", y, x))
KFAST_BINARY(^, "bitwise_xor", detail::binary("aten::bitwise_xor", y, x))
KFAST_BINARY(<, "lt", detail::binary("aten::gt", y, x))
KFAST_BINARY(<=, "le", detail::binary("aten::ge", y, x))
KFAST_BINARY(>, "gt", detail::binary("aten::lt", y, x))
KFAST_BINARY(>=, "ge", detail::binary("aten::le", y, x))
KFAST_BINARY(==, "eq", detail::binary("aten::eq", y, x))
KFAST_BINARY(!=, "ne", detail::binary("aten::ne", y, x))
#undef KFAST_BINARY

inline std::optional<Device> device_of(const Tensor& t) {
  return t.defined() ? std::optional<Device>(t.device()) : std::nullopt;
}

}  // namespace kfast_api
}  // namespace at
