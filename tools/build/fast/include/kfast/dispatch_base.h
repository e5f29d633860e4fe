// Stands in for torch's own, which needs the whole of its ScalarType.h: what ATen/Dispatch.h builds on.
#pragma once

#include <kfast/types.h>

namespace detail {
inline c10::ScalarType scalar_type(c10::ScalarType t) { return t; }
}  // namespace detail
namespace torch {
namespace headeronly {
using c10::ScalarType;
using c10::toString;
namespace impl {
using c10::impl::ScalarTypeToCPPTypeT;
}
}  // namespace headeronly
}  // namespace torch


#define THO_PRIVATE_CASE_TYPE_USING_HINT_TMPL(PRELUDE, enum_type, HINT, ...)          \
  case enum_type: {                                                                  \
    PRELUDE(enum_type);                                                              \
    using HINT [[maybe_unused]] = c10::impl::ScalarTypeToCPPTypeT<enum_type>;        \
    return __VA_ARGS__();                                                            \
  }
#define THO_DISPATCH_SWITCH_TMPL(PRELUDE, CHECK_NOT_IMPLEMENTED, TYPE, NAME, ...)     \
  [&] {                                                                              \
    const auto& the_type = TYPE;                                                     \
    constexpr const char* at_dispatch_name = NAME;                                   \
    c10::ScalarType _st = ::detail::scalar_type(the_type);                           \
    PRELUDE(at_dispatch_name, _st);                                                  \
    switch (_st) {                                                                   \
      __VA_ARGS__                                                                    \
      default:                                                                       \
        CHECK_NOT_IMPLEMENTED(false, '"', at_dispatch_name, "\" not implemented for '", \
                              c10::toString(_st), "'");                              \
    }                                                                                \
  }()
