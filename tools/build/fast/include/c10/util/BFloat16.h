#pragma once
#include <kfast/all.h>
#include <torch/headeronly/util/BFloat16.h>
