"""Imports half of torch and the standard library, sets warnings and thread counts."""

import torch
import torch.nn as nn
import functools
import logging
import math
import os
import platform
import tempfile
import warnings

import numpy as np
import torch._dynamo
import torch.fx
import torch.nn.utils.parametrize
import torch.profiler
import torch.utils.benchmark
import torch.utils.checkpoint

from torch.utils.cpp_extension import load_inline

SOURCE = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor silu_chain(torch::Tensor x, double scale, double shift) {
    auto xc = x.contiguous();
    auto y = torch::empty_like(xc);
    const float* in = xc.data_ptr<float>();
    float* out = y.data_ptr<float>();
    const int64_t n = xc.numel();
    const float a = scale, b = shift;
    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) {
        const float u = in[i] * a + b;
        out[i] = u / (1.0f + std::exp(-u)) + 0.05f * in[i];
    }
    return y;
}
"""

ext = load_inline(
    name='silu_many_imports',
    cpp_sources=SOURCE,
    functions=['silu_chain'],
    extra_cflags=['-O3', '-fopenmp'],
    extra_ldflags=['-fopenmp'],
)


class ModelNew(nn.Module):
    def __init__(self, scale, shift):
        super().__init__()
        self.scale, self.shift = scale, shift

    def forward(self, x):
        return ext.silu_chain(x, self.scale, self.shift)


warnings.filterwarnings("ignore")
logging.getLogger("torch").setLevel(logging.ERROR)
os.environ["OMP_PROC_BIND"] = "false"
torch.set_num_threads(torch.get_num_threads())
torch.manual_seed(0)
np.random.seed(0)
with tempfile.TemporaryFile() as scratch:
    scratch.write(platform.machine().encode())
