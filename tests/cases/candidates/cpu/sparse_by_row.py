"""A sparse product, a thread for each row."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <vector>

torch::Tensor product(torch::Tensor rows, torch::Tensor columns, torch::Tensor values, torch::Tensor x) {
    const int64_t n = rows.size(0) - 1, width = x.size(1);
    auto y = torch::zeros({n, width}, x.options());
    const int64_t *begin = rows.data_ptr<int64_t>(), *at = columns.data_ptr<int64_t>();
    const float *v = values.data_ptr<float>(), *in = x.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < n; ++r)
        for (int64_t k = begin[r]; k < begin[r + 1]; ++k)
            for (int64_t c = 0; c < width; ++c) y.data_ptr<float>()[r * width + c] += v[k] * in[at[k] * width + c];
    return y;
}
"""

ext = load_inline(
    name='sparse_by_row',
    cpp_sources=SOURCE,
    functions=['product'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, rows, columns, values, x):
        return ext.product(rows, columns, values, x)
