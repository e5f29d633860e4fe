"""float4 loads, and packed accessors passed to a kernel."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>

__global__ void scale4(const float4* __restrict__ x, float4* __restrict__ y, float s, int n4) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n4) {
    float4 v = __ldg(x + i);
    v.x *= s; v.y *= s; v.z *= s; v.w *= s;
    y[i] = v;
  }
}

__global__ void bias_tail(torch::PackedTensorAccessor32<float, 2, torch::RestrictPtrTraits> y,
                          const torch::PackedTensorAccessor32<float, 1, torch::RestrictPtrTraits> bias) {
  const int row = blockIdx.x;
  for (int c = threadIdx.x; c < y.size(1); c += blockDim.x) y[row][c] += bias[c];
}

template <typename T>
__global__ void transpose(const at::PackedTensorAccessor64<T, 3> in, at::PackedTensorAccessor64<T, 3> out) {
  for (int64_t r = threadIdx.y; r < in.size(1); r += blockDim.y)
    for (int64_t c = threadIdx.x; c < in.size(2); c += blockDim.x) out[blockIdx.x][c][r] = in[blockIdx.x][r][c];
}

torch::Tensor scale_bias(torch::Tensor x, torch::Tensor bias, double s) {
  TORCH_CHECK(x.numel() % 4 == 0, "numel must be a multiple of 4");
  auto y = torch::empty_like(x);
  const int n4 = x.numel() / 4;
  scale4<<<(n4 + 127) / 128, 128>>>(reinterpret_cast<const float4*>(x.data_ptr<float>()),
                                    reinterpret_cast<float4*>(y.data_ptr<float>()), (float)s, n4);
  bias_tail<<<y.size(0), 64>>>(y.packed_accessor32<float, 2, torch::RestrictPtrTraits>(),
                               bias.packed_accessor32<float, 1, torch::RestrictPtrTraits>());
  return y;
}

torch::Tensor transpose3(torch::Tensor x) {
  auto out = torch::zeros({x.size(0), x.size(2), x.size(1)}, x.options());
  AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "transpose3", ([&] {
    transpose<scalar_t><<<x.size(0), dim3(16, 16)>>>(x.packed_accessor64<scalar_t, 3>(), out.packed_accessor64<scalar_t, 3>());
  }));
  return out;
}
"""

ext = load_inline(
    name="packed",
    cpp_sources="torch::Tensor scale_bias(torch::Tensor x, torch::Tensor bias, double s);\n"
    "torch::Tensor transpose3(torch::Tensor x);",
    cuda_sources=source,
    functions=["scale_bias", "transpose3"],
)


class ModelNew(nn.Module):
    def forward(self, x, bias):
        return ext.scale_bias(x, bias, 0.5), ext.transpose3(x.view(2, 8, -1)), ext.transpose3(x.view(2, 8, -1).double())


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(16, 40), torch.randn(40)]
