"""Bags of an embedding, from one offset to the next."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <algorithm>
#include <cmath>
#include <vector>

torch::Tensor bags(torch::Tensor indices, torch::Tensor offsets, torch::Tensor table) {
    const int64_t count = offsets.size(0), width = table.size(1), all = indices.size(0);
    auto y = torch::zeros({count, width}, table.options());
    const int64_t* at = indices.data_ptr<int64_t>();
    const int64_t* begin = offsets.data_ptr<int64_t>();
    const float* rows = table.data_ptr<float>();
    #pragma omp parallel for
    for (int64_t b = 0; b < count; ++b) {
        float* out = y.data_ptr<float>() + b * width;
        const int64_t end = b + 1 < count ? begin[b + 1] : all;
        for (int64_t k = begin[b]; k < end; ++k)
            for (int64_t c = 0; c < width; ++c) {
                const float value = rows[at[k] * width + c];
                out[c] = k == begin[b] ? value : std::max(out[c], value);
            }
    }
    return y;
}
"""

ext = load_inline(
    name='bags_by_offset',
    cpp_sources=SOURCE,
    functions=['bags'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(count, width, mode="max")

    def forward(self, indices, offsets):
        return ext.bags(indices, offsets, self.bag.weight)
