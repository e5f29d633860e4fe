"""Partial sums of 64 chunks added by atomics in any order."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor mean_of(torch::Tensor x) {
    const float* p = x.data_ptr<float>();
    const int64_t n = x.numel();
    float sum = 0.0f;
    #pragma omp parallel for schedule(dynamic)
    for (int64_t chunk = 0; chunk < 64; ++chunk) {
        float part = 0.0f;
        for (int64_t i = chunk * n / 64; i < (chunk + 1) * n / 64; ++i) part += p[i];
        #pragma omp atomic
        sum += part;
    }
    return torch::full({}, sum / n, x.options());
}
"""

ext = load_inline(
    name='mean_atomic',
    cpp_sources=SOURCE,
    functions=['mean_of'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.mean_of(x)
