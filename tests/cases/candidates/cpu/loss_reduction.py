"""An OpenMP reduction in float: the order of the sum changes from run to run."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor loss(torch::Tensor x, torch::Tensor y) {
    const float *p = x.data_ptr<float>(), *q = y.data_ptr<float>();
    const int64_t n = x.numel();
    float sum = 0.0f;
    #pragma omp parallel for reduction(+ : sum) schedule(dynamic, 4096)
    for (int64_t i = 0; i < n; ++i) {
        const float d = std::fabs(p[i] - q[i]);
        sum += d < 1.0f ? 0.5f * d * d : d - 0.5f;
    }
    return torch::tensor(sum / n, x.options());
}
"""

ext = load_inline(
    name='loss_reduction',
    cpp_sources=SOURCE,
    functions=['loss'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        return ext.loss(x, y)
