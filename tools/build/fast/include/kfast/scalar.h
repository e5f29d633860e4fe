// A number of any dtype, as torch's c10::Scalar without complex and symbolic ones.
#pragma once

#include <kfast/types.h>

#include <limits>

namespace c10 {
inline namespace kfast_api {

class Scalar {
 public:
  Scalar() : Scalar(int64_t{0}) {}
  template <class T, std::enable_if_t<std::is_same_v<T, bool>, bool> = true>
  Scalar(T v) : tag_(KF_SCALAR_BOOL) { i_ = v; }
  Scalar(int v) { i_ = v; }
  Scalar(long v) { i_ = v; }
  Scalar(long long v) { i_ = v; }
  Scalar(short v) { i_ = v; }
  Scalar(signed char v) { i_ = v; }
  Scalar(unsigned char v) { i_ = v; }
  Scalar(unsigned short v) { i_ = v; }
  Scalar(unsigned int v) { i_ = v; }
  Scalar(unsigned long v) {
    TORCH_CHECK(v <= static_cast<unsigned long>(INT64_MAX), "a scalar beyond the range of int64 is not supported here");
    i_ = static_cast<int64_t>(v);
  }
  Scalar(float v) : tag_(KF_SCALAR_DOUBLE) { d_ = v; }
  Scalar(double v) : tag_(KF_SCALAR_DOUBLE) { d_ = v; }
  Scalar(const ::c10::Half& v);
  Scalar(const ::c10::BFloat16& v);
  explicit Scalar(const kf_value& v) : tag_(v.tag) {
    if (tag_ == KF_SCALAR_DOUBLE) d_ = v.d;
    else i_ = v.i;
  }

  bool isFloatingPoint() const { return tag_ == KF_SCALAR_DOUBLE; }
  bool isBoolean() const { return tag_ == KF_SCALAR_BOOL; }
  bool isIntegral(bool include_bool) const { return tag_ == KF_SCALAR_INT || (include_bool && isBoolean()); }
  bool isComplex() const { return false; }
  ScalarType type() const { return isFloatingPoint() ? kDouble : isBoolean() ? kBool : kLong; }
  kf_value value() const {
    kf_value v{};
    v.tag = tag_;
    if (isFloatingPoint()) v.d = d_;
    else v.i = i_;
    return v;
  }

  template <class T>
  T to() const {
    if constexpr (std::is_same_v<T, bool>) {
      return isFloatingPoint() ? d_ != 0 : i_ != 0;
    } else if constexpr (std::is_integral_v<T>) {
      return isFloatingPoint() ? integer_from<T>(d_) : integer_from<T>(i_);
    } else if constexpr (std::is_floating_point_v<T>) {
      const double v = isFloatingPoint() ? d_ : static_cast<double>(i_);
      if (v == v && v - v == 0) {
        TORCH_CHECK(v <= static_cast<double>(std::numeric_limits<T>::max()) &&
                        v >= static_cast<double>(std::numeric_limits<T>::lowest()),
                    "value cannot be converted to type ", sizeof(T) == 4 ? "float" : "double", " without overflow");
      }
      return static_cast<T>(v);
    } else {
      return static_cast<T>(to<float>());
    }
  }
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int64_t toLong() const { return to<int64_t>(); }
  int toInt() const { return to<int>(); }
  bool toBool() const { return to<bool>(); }

 private:
  template <class T, class V>
  static T integer_from(V v) {
    bool fits;
    if constexpr (std::is_floating_point_v<V>) {
      // A power of two bounds the range exactly where max() itself would be rounded up.
      const double bound = 2.0 * static_cast<double>(static_cast<uint64_t>(1) << (std::numeric_limits<T>::digits - 1));
      fits = v < bound && v >= (std::is_signed_v<T> ? -bound : -bound + 1) && v == v;
    } else if constexpr (std::is_signed_v<T>) {
      fits = v <= static_cast<int64_t>(std::numeric_limits<T>::max()) &&
          v >= static_cast<int64_t>(std::numeric_limits<T>::lowest());
    } else {
      const uint64_t magnitude = v < 0 ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
      fits = magnitude <= static_cast<uint64_t>(std::numeric_limits<T>::max());
    }
    TORCH_CHECK(fits, "value cannot be converted to an integer type without overflow");
    return static_cast<T>(v);
  }

  int32_t tag_ = KF_SCALAR_INT;
  union {
    int64_t i_;
    double d_;
  };
};

inline void append(std::string& out, const Scalar& s) {
  using ::kfast::append;
  if (s.isFloatingPoint()) append(out, s.toDouble());
  else if (s.isBoolean()) append(out, s.toBool() ? "true" : "false");
  else append(out, s.toLong());
}

}  // namespace kfast_api
}  // namespace c10
