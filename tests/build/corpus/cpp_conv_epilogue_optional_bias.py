"""at::conv2d and a loop behind it; an optional bias."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/util/Optional.h>

static inline float mish(float v) { return v * std::tanh(std::log1p(std::exp(v))); }

at::Tensor conv_mish(at::Tensor input, at::Tensor weight, c10::optional<at::Tensor> bias, int64_t stride, int64_t padding) {
  at::Tensor out = at::conv2d(input, weight, bias, {stride, stride}, padding);
  TORCH_INTERNAL_ASSERT(out.defined() && out.is_contiguous());
  float* p = out.data_ptr<float>();
  for (int64_t i = 0; i < out.numel(); ++i) p[i] = mish(p[i]);
  return out;
}

torch::Tensor same(torch::Tensor input, torch::Tensor weight, const std::optional<torch::Tensor>& bias) {
  if (bias.has_value()) TORCH_CHECK_EQ(bias->numel(), weight.size(0));
  return torch::relu(torch::conv2d(input, weight, bias, /*stride=*/1, "same"));
}
"""

ext = load_inline(name="conv_mish", cpp_sources=[source], functions=["conv_mish", "same"], extra_cflags=["-O3"])


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, 3)

    def forward(self, x):
        w, b = self.conv.weight.detach(), self.conv.bias.detach()
        return ext.conv_mish(x, w, b, 2, 1), ext.conv_mish(x, w, None, 1, 0), ext.same(x, w, b), ext.same(x, w, None)


def get_init_inputs():
    return [3, 6]


def get_inputs():
    return [torch.randn(2, 3, 12, 10)]
