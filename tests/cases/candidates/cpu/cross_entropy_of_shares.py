"""Binary cross entropy in one loop."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <vector>

torch::Tensor entropy(torch::Tensor p, torch::Tensor target) {
    const int64_t n = p.numel();
    const float *x = p.data_ptr<float>(), *t = target.data_ptr<float>();
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum)
    for (int64_t i = 0; i < n; ++i)
        sum -= t[i] * std::max(std::log(x[i]), -100.0f) + (1 - t[i]) * std::max(std::log1p(-x[i]), -100.0f);
    return torch::scalar_tensor(sum / n, p.options());
}
"""

ext = load_inline(
    name='cross_entropy_of_shares',
    cpp_sources=SOURCE,
    functions=['entropy'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, p, target):
        return ext.entropy(p, target)
