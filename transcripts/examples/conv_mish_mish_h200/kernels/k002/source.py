import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.cpp_extension import load_inline

cuda_source = r"""
#include <torch/types.h>
#include <cuda_runtime.h>
#include <c10/cuda/CUDAStream.h>
#include <c10/cuda/CUDAException.h>

__device__ __forceinline__ float mish(float x) {
    const float e = expf(fminf(x, 20.f));
    const float n = e * (e + 2.f);
    return x > 20.f ? x : x * (n / (n + 2.f));
}

// Reads the convolution's channels-last result [N, P, C], adds the bias, applies mish twice and writes [N, C, P]
// through a 32x32 tile in shared memory, so that both sides are coalesced.
__global__ void __launch_bounds__(256)
epilogue(const float* __restrict__ in, const float* __restrict__ bias, float* __restrict__ out, int channels, int pixels) {
    __shared__ float tile[32][33];
    const long long image = (long long)blockIdx.z * channels * pixels;
    const int c0 = blockIdx.y * 32, p0 = blockIdx.x * 32, tx = threadIdx.x % 32, ty = threadIdx.x / 32;
    const float b = bias[c0 + tx];
    #pragma unroll
    for (int i = ty; i < 32; i += 8)
        if (p0 + i < pixels) tile[i][tx] = mish(mish(in[image + (long long)(p0 + i) * channels + c0 + tx] + b));
    __syncthreads();
    #pragma unroll
    for (int i = ty; i < 32; i += 8)
        if (p0 + tx < pixels) out[image + (long long)(c0 + i) * pixels + p0 + tx] = tile[tx][i];
}

torch::Tensor bias_mish_mish(torch::Tensor y, torch::Tensor bias) {
    TORCH_CHECK(y.is_contiguous(at::MemoryFormat::ChannelsLast), "y must be channels-last");
    const int n = y.size(0), c = y.size(1), h = y.size(2), w = y.size(3);
    TORCH_CHECK(c % 32 == 0, "channels must be a multiple of 32");
    auto out = torch::empty({n, c, h, w}, y.options());
    const dim3 grid((h * w + 31) / 32, c / 32, n);
    epilogue<<<grid, 256, 0, c10::cuda::getCurrentCUDAStream()>>>(
        y.data_ptr<float>(), bias.data_ptr<float>(), out.data_ptr<float>(), c, h * w);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    return out;
}
"""

kernel = load_inline(
    name="conv_mish_mish_nhwc",
    cpp_sources="torch::Tensor bias_mish_mish(torch::Tensor y, torch::Tensor bias);",
    cuda_sources=cuda_source,
    functions=["bias_mish_mish"],
    extra_cuda_cflags=["-O3"],
)


class ModelNew(nn.Module):
    def __init__(self, in_channels, out_channels, kernel_size):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size)

    def forward(self, x):
        last = torch.channels_last
        y = F.conv2d(x.contiguous(memory_format=last), self.conv.weight.contiguous(memory_format=last))
        return kernel.bias_mish_mish(y.contiguous(memory_format=last), self.conv.bias)
