"""The largest size so far is used and not kept."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>

torch::Tensor over_largest(torch::Tensor x, torch::Tensor scale, bool keep) {
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>();
    float *out = y.data_ptr<float>(), *kept = scale.data_ptr<float>();
    float largest = 0.9f * *kept;
    for (int64_t i = 0; i < x.numel(); ++i) largest = std::max(largest, std::fabs(in[i]));
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] / largest;
    if (keep) *kept = largest;
    return y;
}
"""

ext = load_inline(
    name='running_scale_forgotten',
    cpp_sources=SOURCE,
    functions=['over_largest'],
    extra_cflags=['-O2'],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer('scale', torch.ones(()))

    def forward(self, x):
        return ext.over_largest(x, self.scale, False)
