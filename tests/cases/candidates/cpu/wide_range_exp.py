"""Exp of a product; the largest outputs are 1e30 times the smallest."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = std::exp(7.0f * x.data_ptr<float>()[i]);
    return y;
}
"""

ext = load_inline(
    name='wide_range_exp',
    cpp_sources=SOURCE,
    functions=['run'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
