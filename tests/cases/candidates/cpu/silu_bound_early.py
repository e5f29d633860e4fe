"""The function kept in a partial and called from a list comprehension over halves."""

import torch
import torch.nn as nn
from functools import partial

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
    name='silu_bound_early',
    cpp_sources=SOURCE,
    functions=['silu_chain'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.kernel = partial(call, scale, shift)

    def forward(self, x):
        middle = x.size(0) // 2
        return torch.cat([self.kernel(part) for part in (x[:middle], x[middle:])])


def call(scale, shift, x):
    return ext.silu_chain(x, scale, shift)
