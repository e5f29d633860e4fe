"""Multiplies by the reciprocal of the step: a value at the edge of two steps may round the other way."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float inverse = 1.0f / 0.037f;
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i)
        y.data_ptr<float>()[i] = std::min(std::max(std::nearbyint(x.data_ptr<float>()[i] * inverse), -128.0f), 127.0f) * 0.037f;
    return y;
}
"""

ext = load_inline(
    name='quantised_reciprocal',
    cpp_sources=SOURCE,
    functions=['run'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
