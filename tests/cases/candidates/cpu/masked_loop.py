"""A bool mask and infinite outputs."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor fill(torch::Tensor x, torch::Tensor mask) {
    auto y = torch::empty_like(x);
    const bool* m = mask.data_ptr<bool>();
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = m[i] ? -INFINITY : 2.0f * x.data_ptr<float>()[i];
    return y;
}
"""

ext = load_inline(
    name='masked_loop',
    cpp_sources=SOURCE,
    functions=['fill'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x, mask):
        return ext.fill(x, mask)
