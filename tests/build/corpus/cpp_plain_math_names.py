"""Mathematics by plain names and without includes: which overload is meant depends on the headers."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <ATen/AccumulateType.h>
#include <ATen/ops/empty_like.h>

template <typename T> const char* name_of(T) { return sizeof(T) == 4 ? "float" : sizeof(T) == 8 ? "double" : "other"; }

std::vector<std::string> kinds() {
  const float f = -0.75f;
  return {name_of(abs(f)), name_of(exp(f)), name_of(sqrt(2.f)), name_of(pow(2.f, 2)), name_of(fmax(f, 1.f)),
          name_of(std::max(f, 1.f)), name_of(fabs(f)), name_of(floor(f)), name_of(log1p(2.f)), name_of(tanh(f)),
          name_of(at::acc_type<float, false>(0)), name_of(at::acc_type<float, true>(0)), std::to_string(abs(f)),
          std::to_string(isnan(f)), std::to_string(TORCH_VERSION_MAJOR >= 2), std::to_string(M_PI)};
}

at::Tensor gelu(at::Tensor x) {
  auto y = at::empty_like(x);
  const float* p = x.data_ptr<float>();
  float* q = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); i++) q[i] = 0.5 * p[i] * (1 + erf(p[i] / sqrt(2.0f))) + abs(p[i]) * exp(-abs(p[i]));
  return y;
}

float dot8(at::Tensor x) {
  const float* p = x.data_ptr<float>();
  __m256 sum = _mm256_setzero_ps();
  for (int i = 0; i + 8 <= x.numel(); i += 8) sum = _mm256_add_ps(sum, _mm256_mul_ps(_mm256_loadu_ps(p + i), _mm256_loadu_ps(p + i)));
  float parts[8];
  _mm256_storeu_ps(parts, sum);
  float total = 0;
  for (float part : parts) total += part;
  return total;
}
"""

ext = load_inline(
    name="plain_math", cpp_sources=source, functions=["kinds", "gelu", "dot8"], extra_cflags=["-O2", "-mavx2"]
)


class ModelNew(nn.Module):
    def forward(self, x):
        return ext.kinds(), ext.gelu(x), round(ext.dot8(x), 3)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(4, 24)]
