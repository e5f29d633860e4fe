"""Keeps scratch buffers between calls and returns a fresh output."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor softmax_rows(torch::Tensor x, torch::Tensor top, torch::Tensor sum) {
    auto y = torch::empty_like(x);
    const int64_t rows = x.size(0), cols = x.size(1);
    const float* in = x.data_ptr<float>();
    float *out = y.data_ptr<float>(), *t = top.data_ptr<float>(), *s = sum.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        t[r] = in[r * cols];
        for (int64_t c = 1; c < cols; ++c) t[r] = std::max(t[r], in[r * cols + c]);
    }
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        s[r] = 0.0f;
        for (int64_t c = 0; c < cols; ++c) s[r] += out[r * cols + c] = std::exp(in[r * cols + c] - t[r]);
    }
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < cols; ++c) out[r * cols + c] *= 1.0f / s[r];
    return y;
}
"""

ext = load_inline(
    name='softmax_scratch',
    cpp_sources=SOURCE,
    functions=['softmax_rows'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.scratch = None

    def forward(self, x):
        if self.scratch is None or self.scratch[0].numel() != x.size(0):
            self.scratch = (torch.empty(x.size(0)), torch.empty(x.size(0)))
        return ext.softmax_rows(x, *self.scratch)
