"""Returns a new tensor and leaves the input, which the reference changes and returns."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor scale(torch::Tensor x, torch::Tensor y) {
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] * 1.5f + 0.25f;
    return y;
}
"""

ext = load_inline(
    name='in_place_not',
    cpp_sources=SOURCE,
    functions=['scale'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.scale(x, torch.empty_like(x))
