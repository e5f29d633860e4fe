"""Partial sums of the threads in double."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor loss(torch::Tensor x, torch::Tensor y) {
    const float *p = x.data_ptr<float>(), *q = y.data_ptr<float>();
    const int64_t n = x.numel();
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i) {
        const float d = std::fabs(p[i] - q[i]);
        sum += d < 1.0f ? 0.5f * d * d : d - 0.5f;
    }
    auto out = torch::empty({}, x.options());
    out.fill_((float)(sum / n));
    return out;
}
"""

ext = load_inline(
    name='loss_in_double',
    cpp_sources=SOURCE,
    functions=['loss'],
    extra_cflags=['-O2', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return ext.loss(x, y)
