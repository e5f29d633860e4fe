"""Tensor options, factories of all kinds, memory formats, strides, dtypes by name."""
# ruff: noqa: E501 - the C++ is as models write it

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
using namespace torch;

std::vector<Tensor> make(Tensor x, c10::ScalarType dtype, c10::Device device) {
  auto options = torch::TensorOptions().dtype(torch::kFloat32).device(x.device()).requires_grad(true);
  auto zeros = torch::zeros({2, x.size(0)}, options);
  auto doubles = torch::ones({3}, torch::dtype(torch::kFloat64).device(torch::kCPU));
  auto full = torch::full({2, 2}, 7, x.options().dtype(torch::kInt64));
  auto like = torch::full_like(x, 0.25);
  auto range = torch::arange(0, 10, 2, torch::TensorOptions(dtype));
  auto strided = torch::empty_strided({2, 3}, {1, 2}, x.options()).fill_(1.5);
  auto nhwc = torch::empty({1, 4, 2, 2}, x.options().memory_format(torch::MemoryFormat::ChannelsLast)).zero_();
  auto eye = torch::eye(3, device);
  auto space = torch::linspace(0, 1, 5);
  auto bools = torch::zeros({2}, torch::kBool);
  auto numbers = torch::tensor({1.5, 2.5}), integers = torch::tensor({1, 2, 3});
  auto scalar = torch::scalar_tensor(3.5f), one = torch::tensor(7, torch::kFloat16);
  return {zeros, doubles, full, like, range, strided, nhwc, eye, space, bools, numbers, integers, scalar, one};
}

std::string describe(Tensor x) {
  std::string text = c10::toString(x.scalar_type());
  text += x.dtype() == torch::kFloat32 ? " float" : " other";
  text += x.dtype() == caffe2::TypeMeta::Make<double>() ? " double" : "";
  text += x.is_contiguous(at::MemoryFormat::ChannelsLast) ? " nhwc" : "";
  text += x.suggest_memory_format() == at::MemoryFormat::ChannelsLast ? " suggested" : "";
  text += x.device().is_cpu() && x.device() == torch::kCPU ? " cpu" : "";
  text += x.device().str() + x.toString() + (x.requires_grad() ? " grad" : "") + (x.type().is_cuda() ? " cuda" : "");
  text += " " + std::to_string(x.element_size()) + " " + std::to_string(x.nbytes());
  text += c10::str(" ", x.sizes(), " ", x.strides(), " ", x.dtype(), " ", x.device(), " ", 1.5, ' ', true, " ", x.layout());
  return text;
}

Tensor nhwc(Tensor x) {
  auto y = x.contiguous(at::MemoryFormat::ChannelsLast);
  auto z = x.to(torch::kFloat64).to(y.dtype()).permute({0, 2, 3, 1}).reshape({-1, x.size(1)}).t();
  return z.expand({2, z.size(0), z.size(1)}).clone(at::MemoryFormat::Contiguous);
}
"""

ext = load_inline(name="options_ext", cpp_sources=source, functions=["make", "describe", "nhwc"])


class ModelNew(nn.Module):
    def forward(self, x):
        made = ext.make(x, torch.int32, torch.device("cpu"))
        texts = [ext.describe(t) for t in made] + [ext.describe(x)]
        facts = [(t.dtype, t.stride(), t.requires_grad, t.is_contiguous()) for t in made]
        return [t.detach() for t in made], texts, facts, ext.nhwc(x)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(2, 3, 4, 5)]
