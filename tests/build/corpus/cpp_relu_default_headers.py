"""Leaves every header to load_inline; a plain loop."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = """
torch::Tensor relu_forward(torch::Tensor x) {
    auto out = torch::zeros_like(x);
    auto in = x.contiguous();
    const float* a = in.data_ptr<float>();
    float* b = out.data_ptr<float>();
    int n = in.numel();
    for (int i = 0; i < n; i++) b[i] = std::max(a[i], 0.0f);
    return out;
}
"""

relu = load_inline(name="relu", cpp_sources=[cpp_source], functions=["relu_forward"], verbose=False)


class ModelNew(nn.Module):
    def forward(self, x):
        return relu.relu_forward(x)


def get_init_inputs():
    return []


def get_inputs():
    return [torch.randn(64, 257)]
