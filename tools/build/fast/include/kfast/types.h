// Dtypes, devices, layouts, memory formats. Their numbers come from this torch; the bridge's build checks them.
#pragma once

#include <kfast/array_ref.h>
#include <kfast_config.h>

namespace c10 {
struct Half;
struct BFloat16;
struct Float8_e4m3fn;
struct Float8_e5m2;
template <class T>
struct complex;

inline namespace kfast_api {

#define KFAST_ENUMERATOR(value, name) name = value,
enum class ScalarType : int8_t {
  KFAST_SCALAR_TYPES(KFAST_ENUMERATOR) Undefined = KFAST_UNDEFINED_DTYPE,
  NumOptions
};
#define KFAST_CONSTANT(value, name) constexpr ScalarType k##name = ScalarType::name;
KFAST_SCALAR_TYPES(KFAST_CONSTANT)
#undef KFAST_ENUMERATOR
#undef KFAST_CONSTANT

enum class Layout : int8_t { Strided, Sparse, SparseCsr, Mkldnn };
constexpr Layout kStrided = Layout::Strided, kSparse = Layout::Sparse;
enum class MemoryFormat : int8_t { Contiguous, Preserve, ChannelsLast, ChannelsLast3d };
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14 };
constexpr DeviceType kCPU = DeviceType::CPU, kCUDA = DeviceType::CUDA, kMeta = DeviceType::Meta;
using DeviceIndex = int8_t;

inline const char* toString(ScalarType t) {
  switch (t) {
#define KFAST_CASE(value, name) \
  case ScalarType::name:        \
    return #name;
    KFAST_SCALAR_TYPES(KFAST_CASE)
#undef KFAST_CASE
    default:
      return "UNKNOWN_SCALAR";
  }
}
inline void append(std::string& out, ScalarType t) { out += toString(t); }
inline void append(std::string& out, Layout l) {
  out += l == kStrided ? "Strided" : l == kSparse ? "Sparse" : l == Layout::SparseCsr ? "SparseCsr" : "Mkldnn";
}
inline void append(std::string& out, MemoryFormat f) {
  constexpr const char* names[] = {"Contiguous", "Preserve", "ChannelsLast", "ChannelsLast3d"};
  out += names[static_cast<int>(f)];
}
inline void append(std::string& out, DeviceType t) {
  out += t == kCPU ? "cpu" : t == kCUDA ? "cuda" : t == kMeta ? "meta" : "other";
}

constexpr bool isFloatingType(ScalarType t) {
#define KFAST_IS(value, name) t == ScalarType::name ||
  return KFAST_FLOATING_TYPES(KFAST_IS) false;
#undef KFAST_IS
}
constexpr bool isReducedFloatingType(ScalarType t) { return isFloatingType(t) && t != kDouble && t != kFloat; }
constexpr bool isIntegralType(ScalarType t, bool include_bool) {
  return t <= kLong || (t >= kUInt16 && t <= kUInt64) || (include_bool && t == kBool);
}
constexpr bool isComplexType(ScalarType t) { return t >= kComplexHalf && t <= kComplexDouble; }
constexpr bool isSignedType(ScalarType t) {
  return isFloatingType(t) || isComplexType(t) || (t >= kChar && t <= kLong);
}
inline ScalarType promoteTypes(ScalarType a, ScalarType b) {
  return static_cast<ScalarType>(kf_promote(static_cast<int32_t>(a), static_cast<int32_t>(b)));
}
inline size_t elementSize(ScalarType t) {
  switch (t) {
    case kByte: case kChar: case kBool: case kFloat8_e5m2: case kFloat8_e4m3fn: return 1;
    case kShort: case kHalf: case kBFloat16: case kUInt16: return 2;
    case kInt: case kFloat: case kComplexHalf: case kUInt32: return 4;
    case kLong: case kDouble: case kComplexFloat: case kUInt64: return 8;
    case kComplexDouble: return 16;
    default: TORCH_CHECK(false, "elementSize of ", toString(t), " is not known here");
  }
  return 0;
}

// The C++ type of each dtype, both ways, for those that candidates use.
template <class T>
struct CppTypeToScalarType;
namespace impl {
template <ScalarType>
struct ScalarTypeToCPPType;
template <ScalarType N>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<N>::type;
}  // namespace impl
#define KFAST_CPP_TYPE(cpp, name)                                                          \
  template <>                                                                              \
  struct CppTypeToScalarType<cpp> : std::integral_constant<ScalarType, ScalarType::name> {}; \
  template <>                                                                              \
  struct impl::ScalarTypeToCPPType<ScalarType::name> {                                     \
    using type = cpp;                                                                      \
  };
KFAST_CPP_TYPE(uint8_t, Byte)
KFAST_CPP_TYPE(int8_t, Char)
KFAST_CPP_TYPE(int16_t, Short)
KFAST_CPP_TYPE(int, Int)
KFAST_CPP_TYPE(int64_t, Long)
KFAST_CPP_TYPE(float, Float)
KFAST_CPP_TYPE(double, Double)
KFAST_CPP_TYPE(bool, Bool)
KFAST_CPP_TYPE(uint16_t, UInt16)
KFAST_CPP_TYPE(uint32_t, UInt32)
KFAST_CPP_TYPE(uint64_t, UInt64)
KFAST_CPP_TYPE(::c10::Half, Half)
KFAST_CPP_TYPE(::c10::BFloat16, BFloat16)
KFAST_CPP_TYPE(::c10::Float8_e4m3fn, Float8_e4m3fn)
KFAST_CPP_TYPE(::c10::Float8_e5m2, Float8_e5m2)
#undef KFAST_CPP_TYPE

struct Device final {
  using Type = DeviceType;
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {
    TORCH_CHECK(index >= -1, "Device index must be -1 or non-negative, got ", static_cast<int>(index));
    TORCH_CHECK(type != kCPU || index <= 0, "CPU device index must be -1 or zero, got ", static_cast<int>(index));
  }
  Device(const std::string& text) : Device(unpack(kf_parse_device(text.data(), text.size()))) {}

  static Device unpack(int64_t packed) {
    return Device(static_cast<DeviceType>(static_cast<int32_t>(packed)), static_cast<DeviceIndex>(packed >> 32));
  }
  int64_t pack() const { return (static_cast<int64_t>(index_) << 32) | static_cast<uint32_t>(type_); }

  bool operator==(const Device& o) const noexcept { return type_ == o.type_ && index_ == o.index_; }
  bool operator!=(const Device& o) const noexcept { return !(*this == o); }
  DeviceType type() const noexcept { return type_; }
  DeviceIndex index() const noexcept { return index_; }
  void set_index(DeviceIndex index) { index_ = index; }
  bool has_index() const noexcept { return index_ != -1; }
  bool is_cuda() const noexcept { return type_ == kCUDA; }
  bool is_cpu() const noexcept { return type_ == kCPU; }
  bool is_meta() const noexcept { return type_ == kMeta; }
  std::string str() const {
    std::string out;
    append(out, type_);
    return has_index() ? out + ":" + std::to_string(index_) : out;
  }

 private:
  DeviceType type_;
  DeviceIndex index_;
};
inline void append(std::string& out, const Device& d) { out += d.str(); }

}  // namespace kfast_api
}  // namespace c10

namespace caffe2 {
inline namespace kfast_api {
// The dtype of a tensor as torch hands it out; here always one of the scalar types.
class TypeMeta final {
 public:
  TypeMeta() = default;
  explicit TypeMeta(c10::ScalarType type) : type_(type) {}
  template <class T>
  static TypeMeta Make() { return TypeMeta(c10::CppTypeToScalarType<T>::value); }
  template <class T>
  bool Match() const { return *this == Make<T>(); }
  c10::ScalarType toScalarType() const { return type_; }
  bool isScalarType() const { return type_ != c10::ScalarType::Undefined; }
  bool isScalarType(c10::ScalarType t) const { return type_ == t; }
  size_t itemsize() const { return c10::elementSize(type_); }
  c10::string_view name() const {
    size_t n = 0;
    const char* text = kf_dtype_name(static_cast<int32_t>(type_), &n);
    return {text, n};
  }
  friend bool operator==(TypeMeta a, TypeMeta b) { return a.type_ == b.type_; }
  friend bool operator!=(TypeMeta a, TypeMeta b) { return a.type_ != b.type_; }

 private:
  c10::ScalarType type_ = c10::ScalarType::Undefined;
};
inline void append(std::string& out, TypeMeta m) { out += m.name(); }
}  // namespace kfast_api
}  // namespace caffe2

namespace c10 {
inline namespace kfast_api {
inline caffe2::TypeMeta scalarTypeToTypeMeta(ScalarType t) { return caffe2::TypeMeta(t); }
inline ScalarType typeMetaToScalarType(caffe2::TypeMeta m) { return m.toScalarType(); }
inline std::optional<ScalarType> optTypeMetaToScalarType(std::optional<caffe2::TypeMeta> m) {
  return m ? std::optional<ScalarType>(m->toScalarType()) : std::nullopt;
}
inline bool operator==(ScalarType t, caffe2::TypeMeta m) { return m.isScalarType(t); }
inline bool operator==(caffe2::TypeMeta m, ScalarType t) { return m.isScalarType(t); }
inline bool operator!=(ScalarType t, caffe2::TypeMeta m) { return !(t == m); }
inline bool operator!=(caffe2::TypeMeta m, ScalarType t) { return !(t == m); }
inline caffe2::TypeMeta get_default_dtype() { return scalarTypeToTypeMeta(static_cast<ScalarType>(kf_default_dtype())); }
inline ScalarType get_default_dtype_as_scalartype() { return static_cast<ScalarType>(kf_default_dtype()); }
}  // namespace kfast_api
}  // namespace c10
