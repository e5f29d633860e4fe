"""at::parallel_for, with OpenMP flags."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <vector>
#include <limits>

at::Tensor softmax(at::Tensor x) {
  x = x.contiguous();
  const auto rows = x.size(0), cols = x.size(-1);
  at::Tensor y = at::empty_like(x);
  const float* p = x.const_data_ptr<float>();
  float* q = y.mutable_data_ptr<float>();
  at::parallel_for(0, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t r = begin; r < end; r++) {
      float top = -std::numeric_limits<float>::infinity();
      for (int64_t c = 0; c < cols; c++) top = std::max(top, p[r * cols + c]);
      float sum = 0;
      for (int64_t c = 0; c < cols; c++) sum += q[r * cols + c] = std::exp(p[r * cols + c] - top);
      for (int64_t c = 0; c < cols; c++) q[r * cols + c] /= sum;
    }
  });
  return y;
}

double total(at::Tensor x) {
  const float* p = x.data_ptr<float>();
  return at::parallel_reduce(int64_t(0), x.numel(), 64, 0.0,
      [&](int64_t b, int64_t e, double s) { for (auto i : c10::irange(b, e)) s += p[i]; return s; },
      [](double a, double b) { return a + b; });
}

int64_t threads() { return at::get_num_threads(); }

void fails(at::Tensor x) {
  at::parallel_for(0, 1000, 1, [&](int64_t begin, int64_t end) {
    TORCH_CHECK(!at::in_parallel_region() || begin > 1000, "stopped in a region");
  });
}
"""

ext = load_inline(
    name="softmax_ext",
    cpp_sources=[source],
    functions=["softmax", "total", "threads", "fails"],
    extra_cflags=["-O3", "-fopenmp"],
    extra_ldflags=["-fopenmp"],
)


class ModelNew(nn.Module):
    def forward(self, x):
        try:
            ext.fails(x)
            raised = ""
        except RuntimeError as error:
            raised = str(error)
        return ext.softmax(x), round(ext.total(x), 3), ext.threads(), raised


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(100, 33)]
