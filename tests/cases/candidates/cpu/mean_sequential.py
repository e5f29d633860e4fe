"""One float accumulator over 911107 terms of both signs."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor mean_of(torch::Tensor x) {
    const float* p = x.data_ptr<float>();
    float sum = 0.0f;
    for (int64_t i = 0; i < x.numel(); ++i) sum += p[i];
    return torch::full({}, sum / x.numel(), x.options());
}
"""

ext = load_inline(
    name='mean_sequential',
    cpp_sources=SOURCE,
    functions=['mean_of'],
    extra_cflags=['-O2'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.mean_of(x)
