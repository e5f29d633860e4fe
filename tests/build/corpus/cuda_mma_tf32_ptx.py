"""Inline PTX: cvt.rna.tf32 and mma.sync m16n8k8, default headers."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
__device__ __forceinline__ uint32_t to_tf32(float v) {
  uint32_t out;
  asm volatile("cvt.rna.tf32.f32 %0, %1;\n" : "=r"(out) : "f"(v));
  return out;
}

__global__ void mma_kernel(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c,
                           int M, int N, int K) {
  const int lane = threadIdx.x & 31, group = lane >> 2, in_group = lane & 3;
  const int row = blockIdx.y * 16, col = blockIdx.x * 8;
  float d[4] = {0, 0, 0, 0};
  for (int k = 0; k < K; k += 8) {
    uint32_t fa[4], fb[2];
    fa[0] = to_tf32(a[(row + group) * K + k + in_group]);
    fa[1] = to_tf32(a[(row + group + 8) * K + k + in_group]);
    fa[2] = to_tf32(a[(row + group) * K + k + in_group + 4]);
    fa[3] = to_tf32(a[(row + group + 8) * K + k + in_group + 4]);
    fb[0] = to_tf32(b[(k + in_group) * N + col + group]);
    fb[1] = to_tf32(b[(k + in_group + 4) * N + col + group]);
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(fa[0]), "r"(fa[1]), "r"(fa[2]), "r"(fa[3]), "r"(fb[0]), "r"(fb[1]));
  }
  c[(row + group) * N + col + in_group * 2] = d[0];
  c[(row + group) * N + col + in_group * 2 + 1] = d[1];
  c[(row + group + 8) * N + col + in_group * 2] = d[2];
  c[(row + group + 8) * N + col + in_group * 2 + 1] = d[3];
}

torch::Tensor tf32_matmul(torch::Tensor a, torch::Tensor b) {
  const auto M = a.size(0), K = a.size(1), N = b.size(1);
  auto c = torch::zeros({M, N}, a.options());
  mma_kernel<<<dim3(N / 8, M / 16), 32>>>(a.data_ptr<float>(), b.data_ptr<float>(), c.data_ptr<float>(), M, N, K);
  cudaError_t error = cudaGetLastError();
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
  return c;
}
"""

ext = load_inline(
    "tf32_matmul", "torch::Tensor tf32_matmul(torch::Tensor a, torch::Tensor b);", source, ["tf32_matmul"]
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.tf32_matmul(a, b)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(32, 40), torch.randn(40, 24)]
