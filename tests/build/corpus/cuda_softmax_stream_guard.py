"""Streams, guards, launch checks, warp shuffles, dynamic shared memory."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAException.h>
#include <cuda_runtime.h>

#define CHECK_CUDA(x) TORCH_CHECK(x.is_cuda(), #x " must be a CUDA tensor")
#define CHECK_CONTIGUOUS(x) TORCH_CHECK(x.is_contiguous(), #x " must be contiguous")
#define CHECK_INPUT(x) CHECK_CUDA(x); CHECK_CONTIGUOUS(x)

__device__ __forceinline__ float warp_max(float v) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, offset));
  return v;
}
__device__ __forceinline__ float warp_sum(float v) {
  #pragma unroll
  for (int offset = 16; offset > 0; offset >>= 1) v += __shfl_xor_sync(0xffffffffu, v, offset);
  return v;
}

__global__ void softmax_kernel(const float* __restrict__ x, float* __restrict__ y, int64_t cols) {
  extern __shared__ float row[];
  const int lane = threadIdx.x;
  const float* in = x + blockIdx.x * cols;
  float* out = y + blockIdx.x * cols;
  float top = -INFINITY;
  for (int64_t c = lane; c < cols; c += 32) { row[c] = in[c]; top = fmaxf(top, row[c]); }
  top = warp_max(top);
  float sum = 0.f;
  for (int64_t c = lane; c < cols; c += 32) { row[c] = __expf(row[c] - top); sum += row[c]; }
  sum = warp_sum(sum);
  for (int64_t c = lane; c < cols; c += 32) out[c] = row[c] / sum;
}

torch::Tensor softmax(torch::Tensor x) {
  CHECK_INPUT(x);
  const at::cuda::OptionalCUDAGuard device_guard(device_of(x));
  auto y = torch::empty(x.sizes(), x.options());
  const auto cols = x.size(-1);
  const auto rows = x.numel() / cols;
  cudaStream_t stream = at::cuda::getCurrentCUDAStream();
  softmax_kernel<<<dim3(rows), dim3(32), cols * sizeof(float), stream>>>(
      x.data_ptr<float>(), y.data_ptr<float>(), cols);
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
"""

ext = load_inline(
    name="softmax_stream",
    cpp_sources="torch::Tensor softmax(torch::Tensor x);",
    cuda_sources=source,
    functions=["softmax"],
    extra_cuda_cflags=["-O3", "--use_fast_math"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.softmax(x)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(37, 500)]
