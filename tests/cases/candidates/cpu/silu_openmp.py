"""An OpenMP loop."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor silu_chain(torch::Tensor x, double scale, double shift) {
    auto xc = x.contiguous();
    auto y = torch::empty_like(xc);
    const float* in = xc.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t n = xc.numel();
    const float a = scale, b = shift;
    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
    }
    return y;
}
"""

ext = load_inline(
    name='silu_openmp',
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
        return ext.silu_chain(x, self.scale, self.shift)
