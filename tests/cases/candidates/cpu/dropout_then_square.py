"""Torch's own dropout, then a kernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor square(torch::Tensor x) {
    auto y = torch::empty_like(x);
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float v = x.data_ptr<float>()[i];
        y.data_ptr<float>()[i] = v * v + 1.0f;
    }
    return y;
}
"""

ext = load_inline(
    name='dropout_then_square',
    cpp_sources=SOURCE,
    functions=['square'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.dropout = nn.Dropout(p)

    def forward(self, x):
        return ext.square(self.dropout(x))
