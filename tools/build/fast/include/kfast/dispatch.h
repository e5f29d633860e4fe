// The AT_DISPATCH macros are torch's own; they meet the types of the thin headers.
#pragma once

#include <kfast/macros.h>
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

#include <kfast_torch/ATen/Dispatch.h>
