"""Registers an operator with TORCH_LIBRARY and calls it through torch.ops."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <torch/library.h>
#include <cmath>

torch::Tensor silu_chain(const torch::Tensor& x, double scale, double shift) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const float a = scale, b = shift;
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
    }
    return y;
}

TORCH_LIBRARY(judged_cases, m) {
    m.def("silu_chain(Tensor x, float scale, float shift) -> Tensor", &silu_chain);
}
"""

load_inline(
    name="silu_operator_library",
    cpp_sources=SOURCE,
    is_python_module=False,
    extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        return torch.ops.judged_cases.silu_chain(x, self.scale, self.shift)
