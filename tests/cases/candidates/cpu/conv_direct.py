"""A direct convolution."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor conv_relu6(torch::Tensor x, torch::Tensor weight, torch::Tensor bias) {
    const int64_t N = x.size(0), C = x.size(1), H = x.size(2), W = x.size(3), F = weight.size(0);
    auto y = torch::empty({N, F, H, W}, x.options());
    auto in = x.accessor<float, 4>();
    auto w = weight.accessor<float, 4>();
    auto out = y.accessor<float, 4>();
    const float* b = bias.data_ptr<float>();
    #pragma omp parallel for collapse(2)
    for (int64_t n = 0; n < N; ++n)
        for (int64_t f = 0; f < F; ++f)
            for (int64_t i = 0; i < H; ++i)
                for (int64_t j = 0; j < W; ++j) {
                    float sum = b[f];
                    for (int64_t c = 0; c < C; ++c)
                        for (int64_t u = 0; u < 3; ++u)
                            for (int64_t v = 0; v < 3; ++v) {
                                const int64_t s = i + u - 1, t = j + v - 1;
                                if (s >= 0 && s < H && t >= 0 && t < W) sum += in[n][c][s][t] * w[f][c][u][v];
                            }
                    out[n][f][i][j] = std::min(std::max(sum * 4.0f, 0.0f), 6.0f);
                }
    return y;
}
"""

ext = load_inline(
    name='conv_direct',
    cpp_sources=SOURCE,
    functions=['conv_relu6'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, channels, filters):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x):
        return ext.conv_relu6(x, self.conv.weight, self.conv.bias)
