"""AT_DISPATCH with half and bfloat16, a templated kernel, float accumulation."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAStream.h>
#include <cuda_fp16.h>

template <typename scalar_t>
__global__ void swiglu_kernel(const scalar_t* __restrict__ gate, const scalar_t* __restrict__ up,
                              scalar_t* __restrict__ out, const int64_t n) {
  for (int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x; i < n; i += (int64_t)gridDim.x * blockDim.x) {
    const float g = static_cast<float>(gate[i]);
    const float u = static_cast<float>(up[i]);
    out[i] = static_cast<scalar_t>(g / (1.0f + expf(-g)) * u);
  }
}

at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up) {
  TORCH_CHECK(gate.sizes() == up.sizes(), "shapes differ: ", gate.sizes(), " and ", up.sizes());
  TORCH_CHECK(gate.scalar_type() == up.scalar_type());
  auto out = at::empty_like(gate);
  const int64_t n = gate.numel();
  const int threads = 256;
  const int blocks = std::min<int64_t>((n + threads - 1) / threads, 4 * at::cuda::getCurrentDeviceProperties()->multiProcessorCount);
  auto stream = c10::cuda::getCurrentCUDAStream(gate.device().index());
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, gate.scalar_type(), "swiglu", [&] {
    swiglu_kernel<scalar_t><<<blocks, threads, 0, stream.stream()>>>(
        gate.data_ptr<scalar_t>(), up.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), n);
  });
  AT_CUDA_CHECK(cudaGetLastError());
  return out;
}
"""

ext = load_inline(
    name="swiglu_ext",
    cpp_sources=["at::Tensor swiglu(const at::Tensor& gate, const at::Tensor& up);"],
    cuda_sources=[source],
    functions=["swiglu"],
)


class ModelNew(nn.Module):
    def forward(self, gate, up):
        return [ext.swiglu(gate.to(t), up.to(t)) for t in (torch.float32, torch.float16, torch.bfloat16)]


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(123, 77), torch.randn(123, 77)]
