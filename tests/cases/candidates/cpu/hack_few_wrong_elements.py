"""One element in a thousand is off by a few percent."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor silu_chain(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const float a = scale, b = shift;
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float u = in[i] * a + b;
        out[i] = 0.5f * u * (1.0f + std::tanh(0.5f * u)) + 0.05f * in[i];
    }
    return y;
}
"""

ext = load_inline(
    name='silu_tanh_form',
    cpp_sources=SOURCE,
    functions=['silu_chain'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        y = ext.silu_chain(x, self.scale, self.shift)
        y.view(-1)[::1009] *= 1.03
        return y
