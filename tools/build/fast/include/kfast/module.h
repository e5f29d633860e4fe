// The part of pybind11 that candidates use to bind: PYBIND11_MODULE, module.def, arg with defaults, doc, attr.
#pragma once

#include <kfast/bind.h>

namespace pybind11 {
inline namespace kfast_api {

struct none {};

// A parameter's name, and its default value as a Python object.
struct arg_v;
struct arg {
  constexpr explicit arg(const char* name) : name(name) {}
  template <class T>
  arg_v operator=(T&& value) const;
  const char* name;
};
struct arg_v {
  const char* name;
  _object* value;
};
template <class T>
arg_v arg::operator=(T&& value) const {
  using V = std::decay_t<T>;
  if constexpr (std::is_same_v<V, std::nullopt_t> || std::is_same_v<V, none>) return {name, kf_none()};
  else return {name, kfast::Caster<V>::cast(value)};
}

namespace literals {
constexpr arg operator""_a(const char* name, size_t) { return arg(name); }
}  // namespace literals

// Picks one of several functions of a name by its parameters.
template <class... P>
struct overload_cast_of {
  template <class R>
  constexpr auto operator()(R (*function)(P...)) const { return function; }
};
template <class... P>
constexpr overload_cast_of<P...> overload_cast{};

using gil_scoped_release = kfast::Unlocked;
template <class Guard>
struct call_guard {};

class module_ {
 public:
  explicit module_(_object* raw) : raw_(raw) {}

  template <class R, class... P, class... Extra>
  module_& def(const char* name, R (*function)(P...), const Extra&... extra) {
    return add<R (*)(P...), R, P...>(name, function, false, extra...);
  }
  // A lambda without captures is the function that it converts to.
  template <class L, class... Extra, class = decltype(+std::declval<const L&>()),
            class = std::enable_if_t<std::is_class_v<L>>>
  module_& def(const char* name, const L& lambda, const Extra&... extra) {
    return def(name, +lambda, extra...);
  }
  // As load_inline's own bindings: errors and warnings the way torch::wrap_pybind_function does them.
  template <class R, class... P, class... Extra>
  module_& def(const char* name, torch::Wrapped<R (*)(P...)> wrapped, const Extra&... extra) {
    return add<R (*)(P...), R, P...>(name, wrapped.function, true, extra...);
  }

  struct Doc {
    Doc& operator=(const char* text) {
      kf_module_set(module, "__doc__", kf_from_string(text, std::strlen(text)));
      return *this;
    }
    _object* module;
  };
  Doc doc() { return {raw_}; }
  struct Attribute {
    template <class T>
    void operator=(const T& value) { kf_module_set(module, name, kfast::Caster<std::decay_t<T>>::cast(value)); }
    _object* module;
    const char* name;
  };
  Attribute attr(const char* name) { return {raw_, name}; }

 private:
  struct Build {
    kf_function* function;
    kf_parameter* parameters;
    int32_t named = 0;
    void operator()(const char* doc) { function->doc = doc; }
    void operator()(call_guard<gil_scoped_release>) { function->release_gil = 1; }
    void operator()(const arg& a) { parameters[named++].name = a.name; }
    void operator()(const arg_v& a) {
      parameters[named].name = a.name;
      parameters[named++].fallback = a.value;
    }
  };
  template <class F, class R, class... P, class... Extra>
  module_& add(const char* name, F function, bool wrap, const Extra&... extra) {
    constexpr int32_t count = sizeof...(P);
    constexpr int32_t named = (0 + ... + (std::is_same_v<Extra, arg> || std::is_same_v<Extra, arg_v>));
    static_assert(named == 0 || named == count, "each parameter needs its py::arg, or none has one");
    // Both live as long as the module, which is never unloaded.
    auto* parameters = new kf_parameter[count + 1]{{nullptr, kfast::CasterFor<P>::name, nullptr}..., {}};
    auto* f = new kf_function{};
    f->call = &kfast::Invoker<F, R, P...>::call;
    f->function = reinterpret_cast<void (*)()>(function);
    f->parameters = parameters;
    f->count = count;
    f->name = name;
    f->doc = "";
    f->torch_errors = wrap;
    if constexpr (std::is_void_v<R>) f->result = "None";
    else f->result = kfast::CasterFor<R>::name;
    Build build{f, parameters};
    (build(extra), ...);
    kf_module_add(raw_, f);
    return *this;
  }
  _object* raw_;
};
using module = module_;

}  // namespace kfast_api
}  // namespace pybind11

namespace py = pybind11;

#define KFAST_STRING_(x) #x
#define KFAST_STRING(x) KFAST_STRING_(x)
#define KFAST_JOIN_(a, b) a##b
#define KFAST_JOIN(a, b) KFAST_JOIN_(a, b)
#define PYBIND11_MODULE(name, variable)                                                                  \
  static void KFAST_JOIN(kfast_fill_, name)(::pybind11::module_ & variable);                             \
  extern "C" __attribute__((visibility("default"))) _object* KFAST_JOIN(PyInit_, name)() {               \
    return kf_module(KFAST_STRING(name), [](_object* raw) {                                              \
      ::pybind11::module_ module(raw);                                                                   \
      KFAST_JOIN(kfast_fill_, name)(module);                                                             \
    });                                                                                                  \
  }                                                                                                      \
  static void KFAST_JOIN(kfast_fill_, name)(::pybind11::module_ & variable)
