"""Its own PYBIND11_MODULE with docstrings and keyword arguments."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

static torch::Tensor run(torch::Tensor x, float a, float b) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
    }
    return y;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
    m.def("forward", &run, "SiLU of an affine map, plus a leak", py::arg("x"), py::arg("scale"), py::arg("shift"));
}
"""

ext = load_inline(
    name="silu_pybind",
    cpp_sources=[SOURCE],
    extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        return ext.forward(x, scale=self.scale, shift=self.shift)
