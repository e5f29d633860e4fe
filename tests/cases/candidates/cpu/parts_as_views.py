"""Rows reversed, and a view of the input."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <vector>

torch::Tensor reversed(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int64_t rows = x.size(0), n = x.size(1);
    const float* in = x.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) std::reverse_copy(in + r * n, in + (r + 1) * n, y.data_ptr<float>() + r * n);
    return y;
}
"""

ext = load_inline(
    name='parts_as_views',
    cpp_sources=SOURCE,
    functions=['reversed'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return {"reversed": ext.reversed(x), "head": x.narrow(1, 0, 10)}
