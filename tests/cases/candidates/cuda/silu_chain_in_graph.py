"""Four launches, captured in a graph at the first call and replayed; captured anew when the input has another shape."""

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

CUDA = r"""
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void affine_kernel(const float* x, float* y, float scale, float shift, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(x[i], scale, shift);
}

__global__ void gate_kernel(const float* x, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] / (1.0f + expf(-x[i]));
}

__global__ void leak_kernel(const float* x, const float* gated, float* y, int n) {
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = fmaf(0.05f, x[i], gated[i]);
}

torch::Tensor silu_chain(torch::Tensor x, double scale, double shift) {
    auto affine = torch::empty_like(x), gated = torch::empty_like(x), y = torch::empty_like(x);
    const int n = static_cast<int>(x.numel()), blocks = (n + 255) / 256;
    auto stream = c10::cuda::getCurrentCUDAStream();
    affine_kernel<<<blocks, 256, 0, stream>>>(x.data_ptr<float>(), affine.data_ptr<float>(), scale, shift, n);
    gate_kernel<<<blocks, 256, 0, stream>>>(affine.data_ptr<float>(), gated.data_ptr<float>(), n);
    leak_kernel<<<blocks, 256, 0, stream>>>(x.data_ptr<float>(), gated.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
"""

ext = load_inline(
    name='silu_chain_in_graph',
    cpp_sources='torch::Tensor silu_chain(torch::Tensor x, double scale, double shift);',
    cuda_sources=CUDA,
    functions=['silu_chain'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift
        self.graph, self.input, self.output = None, None, None

    def capture(self, x):
        self.input = x.clone()
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):
            ext.silu_chain(self.input, self.scale, self.shift)
        torch.cuda.current_stream().wait_stream(aside)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph):
            self.output = ext.silu_chain(self.input, self.scale, self.shift)

    def forward(self, x):
        if self.graph is None or self.input.shape != x.shape:
            self.capture(x)
        self.input.copy_(x)
        self.graph.replay()
        return self.output.clone()
