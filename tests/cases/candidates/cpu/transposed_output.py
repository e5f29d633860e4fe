"""Computes in the layout of the second input and returns a transposed view."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor combine(torch::Tensor a, torch::Tensor b) {
    auto bt = b.t().contiguous();
    auto at = a.t().contiguous();
    auto y = torch::empty_like(bt);
    const float *p = at.data_ptr<float>(), *q = bt.data_ptr<float>();
    for (int64_t i = 0; i < y.numel(); ++i) y.data_ptr<float>()[i] = std::fmax(p[i], q[i]) - 0.5f * q[i];
    return y.t();
}
"""

ext = load_inline(
    name='transposed_output',
    cpp_sources=SOURCE,
    functions=['combine'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.combine(a, b)
