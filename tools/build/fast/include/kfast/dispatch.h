// The AT_DISPATCH macros are torch's own; they meet the types of the thin headers.
#pragma once

#include <kfast/macros.h>
#include <kfast/types.h>

#include <kfast_torch/ATen/Dispatch.h>
