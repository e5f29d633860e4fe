"""Cooperative groups, a two-pass reduction, atomics, several kernels and tensors returned as a vector."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <vector>
namespace cg = cooperative_groups;

template <int THREADS>
__global__ void moments(const float* __restrict__ x, double* __restrict__ sums, int64_t n) {
  auto block = cg::this_thread_block();
  auto warp = cg::tiled_partition<32>(block);
  __shared__ double part[2][THREADS / 32];
  double s = 0, q = 0;
  for (int64_t i = blockIdx.x * int64_t(THREADS) + block.thread_rank(); i < n; i += int64_t(gridDim.x) * THREADS) {
    const double v = x[i];
    s += v;
    q += v * v;
  }
  s = cg::reduce(warp, s, cg::plus<double>());
  q = cg::reduce(warp, q, cg::plus<double>());
  if (warp.thread_rank() == 0) { part[0][warp.meta_group_rank()] = s; part[1][warp.meta_group_rank()] = q; }
  block.sync();
  if (block.thread_rank() == 0) {
    double a = 0, b = 0;
    for (int i = 0; i < THREADS / 32; ++i) { a += part[0][i]; b += part[1][i]; }
    atomicAdd(sums, a);
    atomicAdd(sums + 1, b);
  }
}

__global__ void normalise(const float* x, float* y, const double* sums, int64_t n, float eps) {
  const double mean = sums[0] / n, var = sums[1] / n - mean * mean;
  const float scale = rsqrtf(float(var) + eps);
  const int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x;
  if (i < n) y[i] = (x[i] - float(mean)) * scale;
}

std::vector<torch::Tensor> standardise(torch::Tensor x, float eps) {
  auto in = x.contiguous();
  auto sums = torch::zeros({2}, in.options().dtype(torch::kDouble));
  auto y = torch::empty_like(in);
  const int64_t n = in.numel();
  moments<256><<<32, 256>>>(in.data_ptr<float>(), sums.data_ptr<double>(), n);
  normalise<<<(n + 255) / 256, 256>>>(in.data_ptr<float>(), y.data_ptr<float>(), sums.data_ptr<double>(), n, eps);
  return {y, sums.div(n).to(torch::kFloat32)};
}
"""

ext = load_inline(
    name="standardise_ext",
    cpp_sources="#include <vector>\nstd::vector<torch::Tensor> standardise(torch::Tensor x, float eps);",
    cuda_sources=source,
    functions=["standardise"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.standardise(x, 1e-5)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(301, 211)]
