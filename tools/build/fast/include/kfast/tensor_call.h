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
// A number on the left of an operation that does not commute becomes a tensor like the right one, as torch does it.
inline Tensor filled_like(const Scalar& x, const Tensor& y) {
  static void* const op = kf_find_operator("aten::empty_like", "");
  Tensor t = kfast::call<Tensor>(op, y, std::optional<ScalarType>(), std::optional<Layout>(), std::optional<Device>(),
                                 std::optional<bool>(), std::optional<MemoryFormat>(MemoryFormat::Preserve));
  static_cast<Tensor&&>(t) = x;
  return t;
}
}  // namespace detail

#define KFAST_CALL(name, overload, x, y)                                 \
  static void* const op_ = kf_find_operator("aten::" name, overload);    \
  return kfast::call<Tensor>(op_, x, y);
#define KFAST_BINARY(op, name, reverse)                                                                        \
  inline Tensor operator op(const Tensor& x, const Tensor& y) { KFAST_CALL(name, "Tensor", x, y) }             \
  inline Tensor operator op(const Tensor& x, const Scalar& y) { KFAST_CALL(name, "Scalar", x, y) }             \
  inline Tensor operator op(const Scalar& x, const Tensor& y) { reverse }
KFAST_BINARY(+, "add", KFAST_CALL("add", "Scalar", y, x))
KFAST_BINARY(*, "mul", KFAST_CALL("mul", "Scalar", y, x))
KFAST_BINARY(-, "sub", KFAST_CALL("sub_", "Tensor", detail::filled_like(x, y), y))
KFAST_BINARY(/, "div", KFAST_CALL("div_", "Tensor", detail::filled_like(x, y), y))
KFAST_BINARY(%, "remainder", KFAST_CALL("remainder_", "Tensor", detail::filled_like(x, y), y))
KFAST_BINARY(&, "bitwise_and", KFAST_CALL("bitwise_and", "Scalar", y, x))
KFAST_BINARY(|, "bitwise_or", KFAST_CALL("bitwise_or", "Scalar", y, x))
KFAST_BINARY(^, "bitwise_xor", KFAST_CALL("bitwise_xor", "Scalar", y, x))
KFAST_BINARY(<, "lt", KFAST_CALL("gt", "Scalar", y, x))
KFAST_BINARY(<=, "le", KFAST_CALL("ge", "Scalar", y, x))
KFAST_BINARY(>, "gt", KFAST_CALL("lt", "Scalar", y, x))
KFAST_BINARY(>=, "ge", KFAST_CALL("le", "Scalar", y, x))
KFAST_BINARY(==, "eq", KFAST_CALL("eq", "Scalar", y, x))
KFAST_BINARY(!=, "ne", KFAST_CALL("ne", "Scalar", y, x))
#undef KFAST_BINARY
#undef KFAST_CALL

inline std::optional<Device> device_of(const Tensor& t) {
  return t.defined() ? std::optional<Device>(t.device()) : std::nullopt;
}

}  // namespace kfast_api
}  // namespace at
