"""Returns a view of a larger fresh buffer with padded rows."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor softmax_rows(torch::Tensor x) {
    const int64_t rows = x.size(0), cols = x.size(1), wide = (cols + 15) / 16 * 16;
    auto padded = torch::empty({rows, wide}, x.options());
    const float* in = x.data_ptr<float>();
    float* out = padded.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float top = in[r * cols], sum = 0.0f;
        for (int64_t c = 1; c < cols; ++c) top = std::max(top, in[r * cols + c]);
        for (int64_t c = 0; c < cols; ++c) sum += out[r * wide + c] = std::exp(in[r * cols + c] - top);
        for (int64_t c = 0; c < cols; ++c) out[r * wide + c] /= sum;
    }
    return padded.narrow(1, 0, cols);
}
"""

ext = load_inline(
    name='softmax_view',
    cpp_sources=SOURCE,
    functions=['softmax_rows'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax_rows(x)
