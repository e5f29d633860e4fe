// Bindings: pybind11's m.def by template deduction over the bridge, without Python's or pybind11's headers.
#pragma once

#include <kfast/torch_namespace.h>

namespace kfast {

// How a C++ type is loaded from a Python object and cast to one. Unknown types do not compile: the stock route has them.
template <class T, class = void>
struct Caster;

template <class T>
constexpr bool is_character = std::is_same_v<T, char> || std::is_same_v<T, wchar_t> || std::is_same_v<T, char16_t> ||
    std::is_same_v<T, char32_t>;

template <class T>
struct Caster<T, std::enable_if_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !is_character<T>>> {
  static constexpr const char* name = "int";
  T value{};
  bool load(_object* o, bool convert) {
    int64_t wide = 0;
    uint64_t unsigned_wide = 0;
    if (!kf_load_int(o, convert, &wide, std::is_unsigned_v<T> && sizeof(T) == 8 ? &unsigned_wide : nullptr)) return false;
    if constexpr (std::is_unsigned_v<T> && sizeof(T) == 8) {
      value = static_cast<T>(unsigned_wide);
    } else {
      value = static_cast<T>(wide);
      if (static_cast<int64_t>(value) != wide) return false;
    }
    return true;
  }
  static _object* cast(T v) {
    if constexpr (std::is_unsigned_v<T>) return kf_from_unsigned(v);
    else return kf_from_int(v);
  }
};
template <class T>
struct Caster<T, std::enable_if_t<std::is_floating_point_v<T>>> {
  static constexpr const char* name = "float";
  T value{};
  bool load(_object* o, bool convert) {
    double wide = 0;
    if (!kf_load_double(o, convert, &wide)) return false;
    value = static_cast<T>(wide);
    return true;
  }
  static _object* cast(T v) { return kf_from_double(v); }
};
template <>
struct Caster<bool> {
  static constexpr const char* name = "bool";
  bool value{};
  bool load(_object* o, bool convert) { return kf_load_bool(o, convert, &value); }
  static _object* cast(bool v) { return kf_from_bool(v); }
};
template <>
struct Caster<std::string> {
  static constexpr const char* name = "str";
  std::string value;
  bool load(_object* o, bool) {
    const char* text = nullptr;
    size_t n = 0;
    if (!kf_load_string(o, &text, &n)) return false;
    value.assign(text, n);
    return true;
  }
  static _object* cast(const std::string& v) { return kf_from_string(v.data(), v.size()); }
};
template <>
struct Caster<std::string_view> {
  static constexpr const char* name = "str";
  std::string_view value;
  bool load(_object* o, bool) {
    const char* text = nullptr;
    size_t n = 0;
    if (!kf_load_string(o, &text, &n)) return false;
    value = {text, n};
    return true;
  }
  static _object* cast(std::string_view v) { return kf_from_string(v.data(), v.size()); }
};
template <>
struct Caster<const char*> {
  static constexpr const char* name = "str";
  static _object* cast(const char* v) { return v ? kf_from_string(v, std::strlen(v)) : kf_none(); }
};
template <>
struct Caster<at::Tensor> {
  static constexpr const char* name = "torch.Tensor";
  at::Tensor value;
  bool load(_object* o, bool) {
    void* raw = nullptr;
    if (!kf_load_tensor(o, &raw)) return false;
    value = at::Tensor::steal(raw);
    return true;
  }
  static _object* cast(const at::Tensor& v) { return kf_from_tensor(v.unsafeGetTensorImpl()); }
};
template <class T, int kind>
struct EnumCaster {
  T value{};
  bool load(_object* o, bool) {
    int64_t raw = 0;
    if (!kf_load_enum(o, kind, &raw)) return false;
    value = static_cast<T>(raw);
    return true;
  }
  static _object* cast(T v) { return kf_from_enum(kind, static_cast<int64_t>(v)); }
};
template <>
struct Caster<c10::ScalarType> : EnumCaster<c10::ScalarType, 0> {
  static constexpr const char* name = "torch.dtype";
};
template <>
struct Caster<c10::Layout> : EnumCaster<c10::Layout, 2> {
  static constexpr const char* name = "torch.layout";
};
template <>
struct Caster<c10::MemoryFormat> : EnumCaster<c10::MemoryFormat, 3> {
  static constexpr const char* name = "torch.memory_format";
};
template <>
struct Caster<c10::Device> {
  static constexpr const char* name = "torch.device";
  c10::Device value{c10::kCPU};
  bool load(_object* o, bool) {
    int64_t raw = 0;
    if (!kf_load_enum(o, 1, &raw)) return false;
    value = c10::Device::unpack(raw);
    return true;
  }
  static _object* cast(c10::Device v) { return kf_from_enum(1, v.pack()); }
};
template <>
struct Caster<c10::IntArrayRef> {
  static constexpr const char* name = "Tuple[int, ...]";
  c10::IntArrayRef value;
  Caster() = default;
  Caster(const Caster&) = delete;
  ~Caster() { kf_free(raw_); }
  bool load(_object* o, bool) {
    size_t n = 0;
    if (!kf_load_ints(o, &raw_, &n)) return false;
    new (&value) c10::IntArrayRef(raw_, n);
    return true;
  }
  int64_t* raw_ = nullptr;
};
template <class T>
struct Caster<std::optional<T>> {
  static constexpr const char* name = "Optional";
  std::optional<T> value;
  bool load(_object* o, bool convert) {
    if (kf_is_none(o)) return true;
    if (!inner_.load(o, convert)) return false;
    value.emplace(inner_.value);
    return true;
  }
  static _object* cast(const std::optional<T>& v) { return v ? Caster<T>::cast(*v) : kf_none(); }
  Caster<T> inner_;
};

// Items on their way into a Python list or tuple; released if one of them cannot be made.
struct Building {
  Building(size_t n, bool is_tuple) : sequence(kf_new_sequence(n, is_tuple)), tuple(is_tuple) {}
  ~Building() {
    if (sequence) kf_release(sequence);
  }
  bool put(_object* item) {
    if (item) kf_put(sequence, next++, item, tuple);
    return item != nullptr;
  }
  _object* done() { return std::exchange(sequence, nullptr); }
  _object* sequence;
  size_t next = 0;
  bool tuple;
};

template <class T>
struct Caster<std::vector<T>> {
  static constexpr const char* name = "collections.abc.Sequence";
  std::vector<T> value;
  bool load(_object* o, bool convert) {
    _object* items = nullptr;
    const int64_t n = kf_sequence(o, &items, convert);
    if (n < 0) return false;
    bool fits = true;
    value.reserve(static_cast<size_t>(n));
    for (int64_t i = 0; i < n && fits; ++i) {
      Caster<T> item;
      fits = item.load(kf_item(items, i), convert);
      if (fits) value.push_back(std::move(item.value));
    }
    kf_release(items);
    return fits;
  }
  static _object* cast(const std::vector<T>& v) {
    Building list(v.size(), false);
    for (const auto& item : v) {
      if (!list.put(Caster<T>::cast(item))) return nullptr;
    }
    return list.done();
  }
};
template <class... T>
struct Caster<std::tuple<T...>> {
  static constexpr const char* name = "tuple";
  static _object* cast(const std::tuple<T...>& v) {
    Building tuple(sizeof...(T), true);
    const bool all = std::apply([&](const auto&... item) { return (tuple.put(Caster<T>::cast(item)) && ...); }, v);
    return all ? tuple.done() : nullptr;
  }
};
template <class A, class B>
struct Caster<std::pair<A, B>> {
  static constexpr const char* name = "tuple";
  static _object* cast(const std::pair<A, B>& v) {
    return Caster<std::tuple<A, B>>::cast(std::tuple<A, B>(v.first, v.second));
  }
};

template <class T>
using CasterFor = Caster<std::remove_cv_t<std::remove_reference_t<T>>>;

// Hands a loaded value over as the parameter's own type: lvalues for references, moved for values.
template <class P, class T>
P pass(T& value) {
  if constexpr (std::is_lvalue_reference_v<P>) return value;
  else return static_cast<P>(std::move(value));
}

// Python's lock, given up for the life of this.
struct Unlocked {
  Unlocked() : state(kf_unlock()) {}
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;
  ~Unlocked() { kf_lock(state); }
  void* state;
};

template <class F, class R, class... P>
struct Invoker {
  template <size_t... I>
  static _object* run(const kf_function* f, _object* const* o, bool convert, std::index_sequence<I...>) {
    const F function = reinterpret_cast<F>(f->function);
    std::tuple<CasterFor<P>...> in;
    if (!(std::get<I>(in).load(o[I], convert) && ...)) return KF_TRY_NEXT;
    // Loading and casting need Python's lock; the function itself may do without it.
    std::optional<Unlocked> unlocked;
    if (f->release_gil) unlocked.emplace();
    if constexpr (std::is_void_v<R>) {
      function(pass<P>(std::get<I>(in).value)...);
      unlocked.reset();
      return kf_none();
    } else {
      R result = function(pass<P>(std::get<I>(in).value)...);
      unlocked.reset();
      return CasterFor<R>::cast(result);
    }
  }
  static _object* call(const kf_function* f, _object* const* o, bool convert) {
    return run(f, o, convert, std::index_sequence_for<P...>());
  }
};

}  // namespace kfast
