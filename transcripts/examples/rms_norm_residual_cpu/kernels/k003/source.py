import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <torch/extension.h>
#include <cmath>
#include <vector>

std::vector<torch::Tensor> add_rms_norm(torch::Tensor x, torch::Tensor residual, torch::Tensor weight, double eps) {
    auto normed = torch::empty_like(x);
    auto total = torch::empty_like(x);
    const int64_t features = x.size(-1);
    const int64_t rows = x.numel() / features;
    const float* x_all = x.data_ptr<float>();
    const float* residual_all = residual.data_ptr<float>();
    const float* w = weight.data_ptr<float>();
    float* normed_all = normed.data_ptr<float>();
    float* total_all = total.data_ptr<float>();
    for (int64_t row = 0; row < rows; row++) {
        const float* xr = x_all + row * features;
        const float* rr = residual_all + row * features;
        float* nr = normed_all + row * features;
        float* tr = total_all + row * features;
        float sum = 0.0f;
        for (int64_t j = 0; j < features; j++) {
            const float value = xr[j] + rr[j];
            tr[j] = value;
            sum += value * value;
        }
        const float scale = 1.0f / std::sqrt(sum / static_cast<float>(features) + static_cast<float>(eps));
        for (int64_t j = 0; j < features; j++) nr[j] = tr[j] * scale * w[j];
    }
    return {normed, total};
}
"""

ext = load_inline(name="add_rms_norm_ext", cpp_sources=cpp_source, functions=["add_rms_norm"])


class ModelNew(nn.Module):
    def __init__(self, features: int, eps: float):
        super().__init__()
        self.weight = nn.Parameter(torch.rand(features) + 0.5)
        self.eps = eps

    def forward(self, x: torch.Tensor, residual: torch.Tensor):
        normed, total = ext.add_rms_norm(x.contiguous(), residual.contiguous(), self.weight, self.eps)
        return normed, total
