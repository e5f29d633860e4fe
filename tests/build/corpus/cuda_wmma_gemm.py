"""Tensor cores by nvcuda::wmma, half operands, float accumulators."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cuda_fp16.h>
#include <mma.h>
using namespace nvcuda;

constexpr int TILE = 16;

__global__ void wmma_kernel(const half* a, const half* b, float* c, int M, int N, int K) {
  const int warp_m = blockIdx.y, warp_n = blockIdx.x;
  wmma::fragment<wmma::matrix_a, TILE, TILE, TILE, half, wmma::row_major> fa;
  wmma::fragment<wmma::matrix_b, TILE, TILE, TILE, half, wmma::row_major> fb;
  wmma::fragment<wmma::accumulator, TILE, TILE, TILE, float> acc;
  wmma::fill_fragment(acc, 0.0f);
  for (int k = 0; k < K; k += TILE) {
    wmma::load_matrix_sync(fa, a + warp_m * TILE * K + k, K);
    wmma::load_matrix_sync(fb, b + k * N + warp_n * TILE, N);
    wmma::mma_sync(acc, fa, fb, acc);
  }
  wmma::store_matrix_sync(c + warp_m * TILE * N + warp_n * TILE, acc, N, wmma::mem_row_major);
}

torch::Tensor gemm(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.dtype() == torch::kFloat16 && b.dtype() == torch::kHalf, "half tensors expected, got ", a.dtype());
  const int M = a.size(0), K = a.size(1), N = b.size(1);
  TORCH_CHECK(M % TILE == 0 && N % TILE == 0 && K % TILE == 0, "sizes must be multiples of ", TILE);
  auto c = torch::empty({M, N}, a.options().dtype(torch::kFloat32));
  dim3 grid(N / TILE, M / TILE);
  wmma_kernel<<<grid, 32>>>(reinterpret_cast<const half*>(a.data_ptr<at::Half>()),
                            reinterpret_cast<const half*>(b.data_ptr()), c.data_ptr<float>(), M, N, K);
  return c;
}
"""

ext = load_inline(
    name="wmma_gemm",
    cpp_sources="torch::Tensor gemm(torch::Tensor a, torch::Tensor b);",
    cuda_sources=source,
    functions=["gemm"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        return ext.gemm(a.half(), b.half())


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(64, 96), torch.randn(96, 48)]
