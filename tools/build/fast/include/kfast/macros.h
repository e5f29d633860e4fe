// C10_HOST_DEVICE, C10_UNLIKELY and so on, as this torch defines them.
#pragma once

#include <torch/headeronly/macros/Macros.h>
