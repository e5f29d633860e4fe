"""Bfloat16 operands, fp32 sums, one rounding at the end."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor multiply(torch::Tensor a, torch::Tensor b, torch::Tensor bias) {
    const int64_t m = a.size(0), k = a.size(1), n = b.size(1);
    auto y = torch::empty({m, n}, a.options());
    const at::BFloat16 *p = a.data_ptr<at::BFloat16>(), *q = b.data_ptr<at::BFloat16>(), *c = bias.data_ptr<at::BFloat16>();
    at::BFloat16* out = y.data_ptr<at::BFloat16>();
    #pragma omp parallel for
    for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int64_t l = 0; l < k; ++l) sum += float(p[i * k + l]) * float(q[l * n + j]);
            out[i * n + j] = at::BFloat16(sum + float(c[j]));
        }
    return y;
}
"""

ext = load_inline(
    name='product_bf16_fp32_sum',
    cpp_sources=SOURCE,
    functions=['multiply'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, a, b, bias):
        return ext.multiply(a, b, bias)
