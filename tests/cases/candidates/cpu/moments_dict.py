"""Returns a dict of two outputs, the variance in one pass."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

std::vector<torch::Tensor> moments(torch::Tensor x) {
    const int64_t rows = x.size(0), cols = x.size(1);
    auto mean = torch::empty({rows}, x.options()), variance = torch::empty({rows}, x.options());
    const float* in = x.data_ptr<float>();
    float *m = mean.data_ptr<float>(), *v = variance.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f, squares = 0.0f;
        for (int64_t c = 0; c < cols; ++c) {
            sum += in[r * cols + c];
            squares += in[r * cols + c] * in[r * cols + c];
        }
        m[r] = sum / cols;
        v[r] = squares / cols - m[r] * m[r];
    }
    return {mean, variance};
}
"""

ext = load_inline(
    name='moments_dict',
    cpp_sources=SOURCE,
    functions=['moments'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x):
        mean, variance = ext.moments(x)
        return {"mean": mean, "variance": variance}
