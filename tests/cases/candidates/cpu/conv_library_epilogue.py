"""At::conv2d without bias, then one loop for bias, scale and clamp."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor conv_relu6(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    auto y = at::conv2d(x, weight, {}, 1, 1);
    const int64_t planes = y.size(0) * y.size(1), filters = y.size(1), area = y.size(2) * y.size(3);
    float* out = y.data_ptr<float>();
    const float* b = bias.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t p = 0; p < planes; ++p)
        for (int64_t i = 0; i < area; ++i) {
            float& v = out[p * area + i];
            v = std::min(std::max((v + b[p % filters]) * 4.0f, 0.0f), 6.0f);
        }
    return y;
}
"""

ext = load_inline(
    name='conv_library_epilogue',
    cpp_sources=SOURCE,
    functions=['conv_relu6'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return ext.conv_relu6(x, self.conv.weight, self.conv.bias)
