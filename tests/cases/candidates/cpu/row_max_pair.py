"""Values and indices as a tuple."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

std::tuple<torch::Tensor, torch::Tensor> row_max(torch::Tensor x) {
    const int64_t rows = x.size(0), cols = x.size(1);
    auto values = torch::empty({rows}, x.options());
    auto indices = torch::empty({rows}, x.options().dtype(torch::kLong));
    const float* in = x.data_ptr<float>();
    for (int64_t r = 0; r < rows; ++r) {
        int64_t best = 0;
        for (int64_t c = 1; c < cols; ++c)
            if (in[r * cols + c] > in[r * cols + best]) best = c;
        values.data_ptr<float>()[r] = in[r * cols + best];
        indices.data_ptr<int64_t>()[r] = best;
    }
    return std::make_tuple(values, indices);
}
"""

ext = load_inline(
    name='row_max_pair',
    cpp_sources=SOURCE,
    functions=['row_max'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.row_max(x)
