"""at::conv2d, then a fused epilogue; optional bias; templates on the activation."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/ATen.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/util/Optional.h>

struct Mish { __device__ float operator()(float v) const { return v * tanhf(log1pf(expf(v))); } };
struct HardSwish { __device__ float operator()(float v) const { return v * fminf(fmaxf(v + 3.f, 0.f), 6.f) / 6.f; } };

template <class Activation, int VEC>
__global__ void epilogue(float* __restrict__ y, const float* __restrict__ bias, int64_t plane, int64_t channels, int64_t n,
                         Activation act) {
  const int64_t base = (int64_t(blockIdx.x) * blockDim.x + threadIdx.x) * VEC;
#pragma unroll
  for (int v = 0; v < VEC; ++v) {
    const int64_t i = base + v;
    if (i < n) y[i] = act(y[i] + (bias ? bias[(i / plane) % channels] : 0.f));
  }
}

at::Tensor conv_act(const at::Tensor& x, const at::Tensor& w, const c10::optional<at::Tensor>& b, const std::string& act) {
  auto y = at::conv2d(x, w, c10::nullopt, {1, 1}, {1, 1});
  const float* bias = b.has_value() ? b.value().data_ptr<float>() : nullptr;
  const int64_t n = y.numel();
  const dim3 grid((n + 1023) / 1024);
  auto stream = at::cuda::getCurrentCUDAStream();
  if (act == "mish") epilogue<Mish, 4><<<grid, 256, 0, stream>>>(y.data_ptr<float>(), bias, y.size(2) * y.size(3), y.size(1), n, Mish());
  else if (act == "hardswish") epilogue<HardSwish, 4><<<grid, 256, 0, stream>>>(y.data_ptr<float>(), bias, y.size(2) * y.size(3), y.size(1), n, HardSwish());
  else TORCH_CHECK(false, "unknown activation ", act);
  return y;
}
"""

ext = load_inline(
    name="conv_act_ext",
    cpp_sources="#include <ATen/ATen.h>\n"
    "at::Tensor conv_act(const at::Tensor& x, const at::Tensor& w, const c10::optional<at::Tensor>& b, const std::string& act);",
    cuda_sources=source,
    functions=["conv_act"],
)


class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(3, 8, 3, padding=1)

    def forward(self, x):
        w, b = self.conv.weight.detach(), self.conv.bias.detach()
        return ext.conv_act(x, w, b, "mish"), ext.conv_act(x, w, None, "hardswish")


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 3, 16, 16)]
