"""Vectors of tensors in, vectors, tuples and pairs out."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <vector>
#include <tuple>
#include <string>

std::vector<torch::Tensor> scale_all(std::vector<torch::Tensor> xs, const std::vector<double>& factors) {
  TORCH_CHECK_VALUE(xs.size() == factors.size(), "got ", xs.size(), " tensors and ", factors.size(), " factors");
  std::vector<torch::Tensor> out;
  for (size_t i = 0; i < xs.size(); ++i) out.push_back(xs[i] * factors[i]);
  return out;
}
std::tuple<torch::Tensor, torch::Tensor, int64_t> top(torch::Tensor x, int k) {
  auto [values, indices] = x.topk(k, -1);
  auto result = torch::max(x, /*dim=*/0);
  return std::make_tuple(values + std::get<0>(result).sum(), indices, x.numel());
}
std::pair<at::Tensor, std::string> named(at::TensorList xs_unused);
std::pair<at::Tensor, std::string> name(torch::Tensor x, std::string prefix) {
  return {torch::cat({x, x.flip({0})}, 1), prefix + std::to_string(x.size(0))};
}
std::vector<int64_t> shape(torch::Tensor x) { return x.sizes().vec(); }
torch::Tensor nothing() { return torch::Tensor(); }
std::optional<double> maybe(bool yes) { return yes ? std::optional<double>(0.5) : std::nullopt; }
std::vector<std::vector<int64_t>> nested(at::IntArrayRef sizes, std::vector<int> more) {
  return {sizes.vec(), std::vector<int64_t>(more.begin(), more.end())};
}
torch::Tensor stack_all(const std::vector<torch::Tensor>& xs) { return torch::stack(xs, 0).mean({0, 1}); }
"""

ext = load_inline(
    name="vectors",
    cpp_sources=source,
    functions=["scale_all", "top", "name", "shape", "nothing", "maybe", "nested", "stack_all"],
)


class ModelNew(nn.Module):
    def forward(self, x, y):
        try:
            ext.scale_all([x], [])
            raised = ""
        except ValueError as error:
            raised = str(error)
        return (
            ext.scale_all((x, y), [2, 0.5]),
            ext.top(x, 3),
            ext.name(x, "rows"),
            ext.shape(x),
            ext.nothing(),
            ext.maybe(True),
            ext.maybe(False),
            ext.nested((1, 2), [3]),
            ext.stack_all([x, x + 1]),
            raised,
        )


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(6, 9), torch.randn(2)]
