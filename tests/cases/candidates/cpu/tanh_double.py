"""Double throughout, another form of the formula, sums in plain order."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int64_t rows = x.size(0), cols = x.size(1);
    const double* in = x.data_ptr<double>();
    double* out = y.data_ptr<double>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (int64_t c = 0; c < cols; ++c) sum += in[r * cols + c];
        for (int64_t c = 0; c < cols; ++c) {
            const double v = in[r * cols + c], e = std::exp(-2.0 * v);
            out[r * cols + c] = (1.0 - e) / (1.0 + e) * std::exp(-0.5 * v * v) + sum;
        }
    }
    return y;
}
"""

ext = load_inline(
    name='tanh_double',
    cpp_sources=SOURCE,
    functions=['run'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
