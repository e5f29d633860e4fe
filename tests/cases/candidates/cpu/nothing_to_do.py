"""An empty input beside a full one."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

std::vector<torch::Tensor> run(torch::Tensor x, torch::Tensor none) {
    auto y = torch::empty_like(x), z = torch::empty_like(none);
    for (int64_t i = 0; i < x.numel(); ++i) y.data_ptr<float>()[i] = std::max(x.data_ptr<float>()[i], 0.0f);
    for (int64_t i = 0; i < none.numel(); ++i) z.data_ptr<float>()[i] = 2.0f * none.data_ptr<float>()[i];
    return {y, z};
}
"""

ext = load_inline(
    name='nothing_to_do',
    cpp_sources=SOURCE,
    functions=['run'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def forward(self, x, none):
        return tuple(ext.run(x, none))
