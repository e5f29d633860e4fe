"""The reference's own names."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor linear(torch::Tensor x, torch::Tensor weight, torch::Tensor bias, bool squash) {
    const int64_t rows = x.size(0), in = x.size(1), out = weight.size(0);
    auto y = torch::empty({rows, out}, x.options());
    const float *p = x.data_ptr<float>(), *w = weight.data_ptr<float>(), *b = bias.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t o = 0; o < out; ++o) {
            float sum = b[o];
            for (int64_t i = 0; i < in; ++i) sum += p[r * in + i] * w[o * in + i];
            y.data_ptr<float>()[r * out + o] = squash ? std::tanh(sum) : sum;
        }
    return y;
}
"""

ext = load_inline(
    name='layers_by_name',
    cpp_sources=SOURCE,
    functions=['linear'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, features, hidden, outputs):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x):
        h = ext.linear(x, self.first.weight, self.first.bias, True)
        return ext.linear(h, self.second.weight, self.second.bias, False)
