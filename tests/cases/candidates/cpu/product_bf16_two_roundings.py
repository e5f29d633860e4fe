"""Rounds after the product and after the bias, as the reference does."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor add_bias(torch::Tensor y, torch::Tensor bias) {
    auto out = torch::empty_like(y);
    const int64_t n = y.size(1);
    for (int64_t i = 0; i < y.numel(); ++i)
        out.data_ptr<at::BFloat16>()[i] = y.data_ptr<at::BFloat16>()[i] + bias.data_ptr<at::BFloat16>()[i % n];
    return out;
}
"""

ext = load_inline(
    name='product_bf16_two_roundings',
    cpp_sources=SOURCE,
    functions=['add_bias'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, a, b, bias):
        return ext.add_bias(a @ b, bias)
