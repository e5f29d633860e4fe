"""Exp by range reduction and a polynomial, within two ULP."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

static inline float exp_approx(float x) {
    x = std::fmin(std::fmax(x, -87.0f), 88.0f);
    const float n = std::nearbyint(x * 1.44269504f);
    float r = std::fma(n, -0.693145751953125f, x);
    r = std::fma(n, -1.42860682030941723212e-6f, r);
    float p = 1.9875691500e-4f;
    p = std::fma(p, r, 1.3981999507e-3f);
    p = std::fma(p, r, 8.3334519073e-3f);
    p = std::fma(p, r, 4.1665795894e-2f);
    p = std::fma(p, r, 1.6666665459e-1f);
    p = std::fma(p, r, 5.0000001201e-1f);
    p = std::fma(p, r * r, r + 1.0f);
    return std::ldexp(p, static_cast<int>(n));
}

torch::Tensor silu_chain(torch::Tensor x, double scale, double shift) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const float a = scale, b = shift;
    #pragma omp parallel for
    for (int64_t i = 0; i < x.numel(); ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + exp_approx(-u)) + 0.05f * in[i];
    }
    return y;
}
"""

ext = load_inline(
    name='silu_polynomial_exp',
    cpp_sources=SOURCE,
    functions=['silu_chain'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        return ext.silu_chain(x, self.scale, self.shift)
