// C10_HOST_DEVICE, C10_UNLIKELY and so on, as this torch defines them.
#pragma once

#include <torch/headeronly/macros/Macros.h>
#if __has_include(<torch/headeronly/version.h>)
#include <torch/headeronly/version.h>
#else
#include <kfast_torch/torch/csrc/api/include/torch/version.h>
#endif
