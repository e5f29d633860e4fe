import torch  # noqa: F401 - as models write it
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>

#define CHANNELS 1
#define PIXELS 4

torch::Tensor pointwise(torch::Tensor x, torch::Tensor w) {
    const int64_t images = x.size(0), in = x.size(1), pixels = x.size(2) * x.size(3), out = w.size(0);
    TORCH_CHECK(pixels % PIXELS == 0 && out % CHANNELS == 0, "not the shapes it was written for");
    auto y = torch::empty({images, out, x.size(2), x.size(3)}, x.options());
    const float* xs = x.data_ptr<float>();
    const float* ws = w.data_ptr<float>();
    float* ys = y.data_ptr<float>();
    const int64_t blocks = pixels / PIXELS;
    at::parallel_for(0, images * blocks, 16, [&](int64_t begin, int64_t end) {
        for (int64_t block = begin; block < end; block++) {
            const int64_t image = block / blocks, at = block % blocks * PIXELS;
            for (int64_t c = 0; c < out; c += CHANNELS) {
                float acc[CHANNELS][PIXELS] = {};
                for (int64_t k = 0; k < in; k++) {
                    const float* row = xs + (image * in + k) * pixels + at;
                    for (int j = 0; j < CHANNELS; j++) {
                        const float weight = ws[(c + j) * in + k];
                        for (int p = 0; p < PIXELS; p++) acc[j][p] += weight * row[p];
                    }
                }
                for (int j = 0; j < CHANNELS; j++)
                    for (int p = 0; p < PIXELS; p++) ys[(image * out + c + j) * pixels + at + p] = acc[j][p];
            }
        }
    });
    return y;
}
"""

ext = load_inline(
    name="pointwise_cpu", cpp_sources=cpp_source, functions=["pointwise"], extra_cflags=["-O3", "-march=native"]
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False)

    def forward(self, x):
        return ext.pointwise(x.contiguous(), self.conv.weight)
