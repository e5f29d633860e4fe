"""The factor folded into the weights in every call."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor clamp6(torch::Tensor y) {
    auto out = torch::empty_like(y);
    for (int64_t i = 0; i < y.numel(); ++i)
        out.data_ptr<float>()[i] = std::min(std::max(y.data_ptr<float>()[i], 0.0f), 6.0f);
    return out;
}
"""

ext = load_inline(
    name='conv_folded_scale',
    cpp_sources=SOURCE,
    functions=['clamp6'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return ext.clamp6(torch.conv2d(x, self.conv.weight * 4.0, self.conv.bias * 4.0, padding=1))
