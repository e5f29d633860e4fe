"""Vectorised loops with OpenMP pragmas, templates, a struct, restrict pointers and aligned buffers."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

matmul_source = r"""
#include <torch/extension.h>
#include <omp.h>
#include <cstdlib>
#include <memory>
#include <array>

constexpr int BM = 32, BN = 64, BK = 64;

struct Shape { int64_t m, n, k; };

template <int UNROLL>
static void block(const float* __restrict__ a, const float* __restrict__ b, float* __restrict__ c, Shape s,
                  int64_t i0, int64_t j0) {
  for (int64_t k0 = 0; k0 < s.k; k0 += BK)
    for (int64_t i = i0; i < std::min<int64_t>(i0 + BM, s.m); ++i)
      for (int64_t k = k0; k < std::min<int64_t>(k0 + BK, s.k); ++k) {
        const float v = a[i * s.k + k];
#pragma omp simd
        for (int64_t j = j0; j < std::min<int64_t>(j0 + BN, s.n); ++j) c[i * s.n + j] += v * b[k * s.n + j];
      }
}

torch::Tensor matmul(torch::Tensor a, torch::Tensor b) {
  TORCH_CHECK(a.device().is_cpu() && b.device().is_cpu(), "tensors must be on the CPU");
  TORCH_CHECK(a.size(1) == b.size(0), "inner sizes differ: ", a.size(1), " vs ", b.size(0));
  TORCH_CHECK_TYPE(a.scalar_type() == at::kFloat, "want float, got ", a.scalar_type());
  a = a.contiguous(); b = b.contiguous();
  const Shape s{a.size(0), b.size(1), a.size(1)};
  auto c = torch::zeros({s.m, s.n}, a.options());
  auto pa = a.data_ptr<float>(), pb = b.data_ptr<float>(), pc = c.data_ptr<float>();
#pragma omp parallel for collapse(2) schedule(static)
  for (int64_t i = 0; i < s.m; i += BM)
    for (int64_t j = 0; j < s.n; j += BN) block<4>(pa, pb, pc, s, i, j);
  return c;
}

float norm(torch::Tensor x) {
  std::array<double, 8> parts{};
  std::unique_ptr<float[]> copy(new float[x.numel()]);
  memcpy(copy.get(), x.contiguous().data_ptr(), x.nbytes());
  double sum = 0;
#pragma omp parallel for reduction(+ : sum)
  for (int64_t i = 0; i < x.numel(); ++i) sum += double(copy[i]) * copy[i];
  parts[0] = sum;
  return static_cast<float>(std::sqrt(std::accumulate(parts.begin(), parts.end(), 0.0)));
}
"""

ext = load_inline(
    name="blocked_matmul",
    cpp_sources=matmul_source,
    functions=["matmul", "norm"],
    extra_cflags=["-O3", "-fopenmp", "-march=native", "-ffast-math"],
    extra_ldflags=["-lgomp"],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        errors = []
        for bad in ((a, a), (a.double(), b)):
            try:
                ext.matmul(*bad)
            except (RuntimeError, TypeError) as error:
                errors.append(f"{type(error).__name__}: {error}")
        return ext.matmul(a, b), ext.matmul(b.t(), a.t()), round(ext.norm(a), 3), errors


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(70, 130), torch.randn(130, 90)]
