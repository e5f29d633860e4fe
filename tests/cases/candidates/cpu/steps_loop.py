"""Rounds as fp32 does, which is some units off."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor steps(torch::Tensor x) {
    auto y = torch::zeros(x.sizes(), x.options().dtype(torch::kLong));
    const float* in = x.data_ptr<float>();
    for (int64_t i = 0, n = x.numel(); i < n; ++i)
        y.data_ptr<int64_t>()[i] = (int64_t)std::floor(std::exp(in[i]) * 1e7f);
    return y;
}
"""

ext = load_inline(
    name='steps_loop',
    cpp_sources=SOURCE,
    functions=['steps'],
    extra_cflags=['-O3'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.steps(x)
