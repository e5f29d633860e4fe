"""Reduced precision on the CPU: c10::Half and c10::BFloat16 in dispatched loops."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <c10/util/Half.h>
#include <c10/util/BFloat16.h>

template <typename scalar_t>
void gelu_kernel(const scalar_t* x, scalar_t* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const float v = static_cast<float>(x[i]);
    y[i] = static_cast<scalar_t>(0.5f * v * (1.0f + erff(v * 0.70710678f)));
  }
}

torch::Tensor gelu(torch::Tensor x) {
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::ScalarType::Half, at::ScalarType::BFloat16, in.scalar_type(), "gelu", [&] {
    gelu_kernel<scalar_t>(in.data_ptr<scalar_t>(), out.data_ptr<scalar_t>(), in.numel());
  });
  return out;
}

torch::Tensor dot(torch::Tensor a, torch::Tensor b) {
  at::Half sum = 0;
  const at::Half *p = a.data_ptr<at::Half>(), *q = b.data_ptr<at::Half>();
  for (int64_t i = 0; i < a.numel(); ++i) sum += p[i] * q[i];
  return torch::full({1}, sum, a.options());
}

int64_t code(torch::Tensor x) {
  return AT_DISPATCH_SWITCH(x.scalar_type(), "code",
      AT_DISPATCH_CASE(at::kHalf, [&] { return int64_t(sizeof(scalar_t)); })
      AT_DISPATCH_CASE_INTEGRAL_TYPES([&] { return int64_t(100 + sizeof(scalar_t)); }));
}
"""

ext = load_inline(name="reduced", cpp_sources=source, functions=["gelu", "dot", "code"], extra_cflags=["-O2"])


class ModelNew(nn.Module):
    def forward(self, x):
        results = [ext.gelu(x.to(t)) for t in (torch.float16, torch.bfloat16, torch.float32, torch.float64)]
        try:
            ext.gelu(x.to(torch.int32))
            raised = ""
        except NotImplementedError as error:
            raised = str(error)
        half = x.flatten()[:33].half()
        codes = [ext.code(torch.zeros(1, dtype=t)) for t in (torch.float16, torch.int16, torch.int64)]
        return results, raised, ext.dot(half, half), codes


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(13, 21)]
