"""bfloat16 pairs, intrinsics, reinterpret_cast from at::BFloat16, __half2 arithmetic."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

__global__ void rms_norm_bf16(const __nv_bfloat162* __restrict__ x, const __nv_bfloat162* __restrict__ w,
                              __nv_bfloat162* __restrict__ y, int pairs, float eps) {
  const int row = blockIdx.x;
  float sum = 0.f;
  for (int i = threadIdx.x; i < pairs; i += 32) {
    const float2 v = __bfloat1622float2(x[row * pairs + i]);
    sum += v.x * v.x + v.y * v.y;
  }
  for (int o = 16; o; o /= 2) sum += __shfl_down_sync(~0u, sum, o);
  sum = __shfl_sync(~0u, sum, 0);
  const float scale = rsqrtf(sum / (2 * pairs) + eps);
  for (int i = threadIdx.x; i < pairs; i += 32) {
    float2 v = __bfloat1622float2(x[row * pairs + i]);
    const float2 g = __bfloat1622float2(w[i]);
    y[row * pairs + i] = __floats2bfloat162_rn(v.x * scale * g.x, v.y * scale * g.y);
  }
}

__global__ void add_half2(const __half2* a, const __half2* b, __half2* c, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = __hadd2(a[i], __hmul2(b[i], __float2half2_rn(2.0f)));
}

torch::Tensor rms_norm(torch::Tensor x, torch::Tensor w, double eps) {
  TORCH_CHECK(x.scalar_type() == at::kBFloat16, "expected bfloat16, got ", x.scalar_type());
  auto y = torch::empty_like(x);
  const int pairs = x.size(-1) / 2;
  rms_norm_bf16<<<x.numel() / x.size(-1), 32>>>(
      reinterpret_cast<const __nv_bfloat162*>(x.data_ptr<at::BFloat16>()),
      reinterpret_cast<const __nv_bfloat162*>(w.data_ptr<at::BFloat16>()),
      reinterpret_cast<__nv_bfloat162*>(y.data_ptr<at::BFloat16>()), pairs, static_cast<float>(eps));
  return y;
}
torch::Tensor fused_add(torch::Tensor a, torch::Tensor b) {
  auto c = at::empty_like(a);
  const int n = a.numel() / 2;
  add_half2<<<(n + 255) / 256, 256>>>((const __half2*)a.data_ptr<c10::Half>(), (const __half2*)b.data_ptr<c10::Half>(),
                                      (__half2*)c.data_ptr<c10::Half>(), n);
  return c;
}
"""

ext = load_inline(
    name="bf16_ext",
    cpp_sources="torch::Tensor rms_norm(torch::Tensor x, torch::Tensor w, double eps);\n"
    "torch::Tensor fused_add(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["rms_norm", "fused_add"],
    extra_cuda_cflags=["-O3", "-U__CUDA_NO_HALF_OPERATORS__"],
)


class ModelNew(nn.Module):
    def forward(self, x, w):
        return ext.rms_norm(x.bfloat16(), w.bfloat16(), 1e-6), ext.fused_add(x.half(), x.half())


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(50, 128), torch.randn(128)]
