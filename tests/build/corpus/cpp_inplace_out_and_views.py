"""Writes in place, out variants, views, copies, scalars out of tensors, memory that C++ owns."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <ATen/ATen.h>
#include <torch/types.h>
#include <numeric>

void scale_(at::Tensor& x, double factor) { x.mul_(factor); }

at::Tensor into(at::Tensor a, at::Tensor b) {
  auto out = at::empty({a.size(0), b.size(1)}, a.options());
  at::matmul_out(out, a, b);
  at::add_out(out, out, out);
  out[0] = 1.5;
  out[1].copy_(out[0]);
  out.select(1, 0).fill_(-2);
  out += 1;
  out -= out;
  out += a.mean().item<float>();
  return out;
}

double first(at::Tensor x) { return x.flatten()[0].item().toDouble(); }

at::Tensor borrowed() {
  static float values[6] = {0, 1, 2, 3, 4, 5};
  return torch::from_blob(values, {2, 3}, torch::kFloat32).clone();
}
static int freed = 0;
int64_t owned() {
  float* memory = new float[4]{1, 2, 3, 4};
  auto t = torch::from_blob(memory, {2, 2}, {1, 2}, [](void* p) { delete[] static_cast<float*>(p); ++freed; }, torch::kFloat32);
  const auto view = t[1];
  t.reset();
  return view.sum().item<int64_t>() + 100 * freed;
}
int frees() { return freed; }
at::Tensor counts(at::Tensor labels, int64_t classes) {
  auto out = torch::zeros({classes}, torch::kInt64);
  auto* p = out.data_ptr<int64_t>();
  auto in = labels.to(torch::kLong).contiguous();
  const int64_t* q = in.data_ptr<int64_t>();
  for (int64_t i = 0; i < in.numel(); ++i) ++p[q[i]];
  return out;
}
bool same_memory(at::Tensor x) { return x.view(-1).data_ptr() == x.data_ptr() && x.detach().data_ptr<float>() == x.data_ptr(); }
at::Tensor no_grad(at::Tensor x) {
  torch::NoGradGuard guard;
  return x * 2;
}
at::Tensor with_grad(at::Tensor x) { return (x * x).sum(); }
"""

ext = load_inline(
    name="in_place",
    cpp_sources=source,
    functions=[
        "scale_",
        "into",
        "first",
        "borrowed",
        "owned",
        "frees",
        "counts",
        "same_memory",
        "no_grad",
        "with_grad",
    ],
)


class ModelNew(nn.Module):
    def forward(self, a, b):
        scaled = a.clone()
        ext.scale_(scaled, 2)
        ext.scale_(scaled, 0.5)
        leaf = a.clone().requires_grad_()
        ext.with_grad(leaf).backward()
        labels = torch.tensor([0, 2, 2, 1], dtype=torch.int32)
        return (
            scaled,
            ext.into(a, b),
            ext.first(a),
            ext.borrowed(),
            ext.owned(),
            ext.frees(),
            ext.counts(labels, 3),
            ext.same_memory(a),
            ext.no_grad(leaf).requires_grad,
            leaf.grad,
        )


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(4, 5), torch.randn(5, 3)]
