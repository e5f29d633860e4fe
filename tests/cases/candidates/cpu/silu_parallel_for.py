"""At::parallel_for and a grain size."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <cmath>

torch::Tensor silu_chain(const torch::Tensor& x, double scale, double shift) {
    TORCH_CHECK(x.scalar_type() == torch::kFloat32, "float32 only");
    auto xc = x.contiguous();
    auto y = torch::empty(xc.sizes(), xc.options());
    const float* in = xc.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const float a = static_cast<float>(scale), b = static_cast<float>(shift);
    at::parallel_for(0, xc.numel(), 8192, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) {
            const float u = in[i] * a + b;
            const float s = 1.0f / (1.0f + std::exp(-u));
            out[i] = u * s + 0.05f * in[i];
        }
    });
    return y;
}
"""

ext = load_inline(
    name='silu_parallel_for',
    cpp_sources=SOURCE,
    functions=['silu_chain'],
    extra_cflags=['-O3'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        return ext.silu_chain(x, self.scale, self.shift)
