"""Two CUDA sources, a struct of parameters, constant memory, int64 indices, an integer output, in-place writes."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

common = r"""
#pragma once
#include <torch/extension.h>
struct Params {
  int64_t rows, cols;
  float scale;
};
__constant__ float taps[3] = {0.25f, 0.5f, 0.25f};
"""

first = r"""
__global__ void smooth_kernel(const float* x, float* y, Params p) {
  const int64_t r = blockIdx.y, c = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
  if (r >= p.rows || c >= p.cols) return;
  float v = 0;
  #pragma unroll
  for (int k = -1; k <= 1; ++k) {
    const int64_t at = c + k;
    if (at >= 0 && at < p.cols) v += taps[k + 1] * x[r * p.cols + at];
  }
  y[r * p.cols + c] = v * p.scale;
}
torch::Tensor smooth(torch::Tensor x, float scale = 1.0f) {
  Params p{x.size(0), x.size(1), scale};
  torch::Tensor y = torch::zeros(x.sizes(), torch::dtype(torch::kFloat32).device(torch::kCUDA, x.get_device()));
  smooth_kernel<<<dim3((p.cols + 127) / 128, p.rows), 128>>>(x.data_ptr<float>(), y.data_ptr<float>(), p);
  return y;
}
"""

second = r"""
__global__ void argmax_kernel(const float* x, int64_t* out, int cols) {
  const float* row = x + (int64_t)blockIdx.x * cols;
  int best = 0;
  for (int c = 1; c < cols; ++c) if (row[c] > row[best]) best = c;
  out[blockIdx.x] = best;
}
torch::Tensor argmax(torch::Tensor x) {
  auto out = torch::empty({x.size(0)}, x.options().dtype(torch::kInt64));
  argmax_kernel<<<x.size(0), 1>>>(x.data_ptr<float>(), out.data_ptr<int64_t>(), x.size(1));
  return out;
}
__global__ void clamp_kernel(float* x, int64_t n, float lo, float hi) {
  for (int64_t i = threadIdx.x + blockIdx.x * blockDim.x; i < n; i += blockDim.x * gridDim.x) x[i] = min(max(x[i], lo), hi);
}
void clamp_(torch::Tensor x, double lo, double hi) {
  clamp_kernel<<<8, 128>>>(x.data_ptr<float>(), x.numel(), lo, hi);
}
"""

ext = load_inline(
    name="smooth_ext",
    cpp_sources=[
        "torch::Tensor smooth(torch::Tensor x, float scale);",
        "torch::Tensor argmax(torch::Tensor x);\nvoid clamp_(torch::Tensor x, double lo, double hi);",
    ],
    cuda_sources=[common, first, second],
    functions=["smooth", "argmax", "clamp_"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        y = ext.smooth(x, 2.0)
        index = ext.argmax(y)
        ext.clamp_(y, -0.5, 0.5)
        return y, index


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(11, 300)]
