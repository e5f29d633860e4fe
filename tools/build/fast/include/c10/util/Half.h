#pragma once
#include <kfast/all.h>
#if KFAST_USES_HALF
#include <torch/headeronly/util/Half.h>
#endif
