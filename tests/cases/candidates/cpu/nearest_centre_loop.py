"""Distances in another form: sums of squared differences."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor nearest(torch::Tensor x, torch::Tensor centres) {
    const int64_t rows = x.size(0), width = x.size(1), count = centres.size(0);
    auto y = torch::empty({rows}, x.options().dtype(torch::kInt64));
    const float *p = x.data_ptr<float>(), *q = centres.data_ptr<float>();
    int64_t* out = y.data_ptr<int64_t>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float least = INFINITY;
        for (int64_t k = 0; k < count; ++k) {
            float d = 0.0f;
            for (int64_t c = 0; c < width; ++c) d += (p[r * width + c] - q[k * width + c]) * (p[r * width + c] - q[k * width + c]);
            if (d < least) {
                least = d;
                out[r] = k;
            }
        }
    }
    return y;
}
"""

ext = load_inline(
    name='nearest_centre_loop',
    cpp_sources=SOURCE,
    functions=['nearest'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, centres, width):
        super().__init__()
        self.centres = nn.Parameter(torch.randn(centres, width))

    def forward(self, x):
        return ext.nearest(x, self.centres)
