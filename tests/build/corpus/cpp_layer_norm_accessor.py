"""Dispatches over dtypes and reads through accessors."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor layer_norm(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& bias, double eps) {
  TORCH_CHECK(x.dim() == 2, "expected 2 dimensions, got ", x.dim(), " in ", x.sizes());
  TORCH_CHECK(weight.scalar_type() == x.scalar_type(), "dtype mismatch: ", weight.dtype(), " and ", x.scalar_type());
  auto out = torch::empty(x.sizes(), x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "layer_norm", ([&] {
    auto in = x.accessor<scalar_t, 2>();
    auto result = out.accessor<scalar_t, 2>();
    auto w = weight.accessor<scalar_t, 1>();
    auto b = bias.accessor<scalar_t, 1>();
    for (int64_t i = 0; i < in.size(0); ++i) {
      scalar_t mean = 0, var = 0;
      for (int64_t j = 0; j < in.size(1); ++j) mean += in[i][j];
      mean /= in.size(1);
      for (int64_t j = 0; j < in.size(1); ++j) var += (in[i][j] - mean) * (in[i][j] - mean);
      const scalar_t scale = scalar_t(1) / std::sqrt(var / in.size(1) + static_cast<scalar_t>(eps));
      for (int64_t j = 0; j < in.size(1); ++j) result[i][j] = (in[i][j] - mean) * scale * w[j] + b[j];
    }
  }));
  return out;
}
"""

ext = load_inline(name="layer_norm_ext", cpp_sources=source, functions=["layer_norm"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)

    def forward(self, x, d):
        w, b = self.norm.weight, self.norm.bias
        strided = x.t().contiguous().t()
        doubles = ext.layer_norm(d, w.double(), b.double(), 1e-5)
        return ext.layer_norm(x, w, b, self.norm.eps), ext.layer_norm(strided, w, b, 1e-3), doubles


def get_init_inputs():
    return [48]


def get_inputs():
    return [torch.randn(17, 48), torch.randn(5, 48, dtype=torch.float64)]
