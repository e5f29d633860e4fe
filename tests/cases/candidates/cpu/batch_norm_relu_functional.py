"""Torch's functional batch norm on the module's own statistics, which counts no batches, then a kernel."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>

torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>();
    float *out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] < 0 ? 0 : in[i];
    return y;
}
"""

ext = load_inline(
    name='batch_norm_relu_functional',
    cpp_sources=SOURCE,
    functions=['relu'],
    extra_cflags=['-O2'],
)


class ModelNew(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x):
        bn = self.bn
        y = nn.functional.batch_norm(
            x, bn.running_mean, bn.running_var, bn.weight, bn.bias, True, bn.momentum, bn.eps
        )
        return ext.relu(y)
