"""Variants of one kernel that differ in Python alone, so that one C++ build serves them all."""

from __future__ import annotations

from tools.tuning import variant

# REPEAT is how often the work is done over: what it costs. MODE is what is wrong with it.
SOURCE = r'''import os

import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

REPEAT = 12
MODE = "honest"
BROKEN = False

if BROKEN:
    raise ValueError("this variant does not even load")

source = r"""
#include <torch/extension.h>
#include <algorithm>

torch::Tensor chain(torch::Tensor x, torch::Tensor scale, torch::Tensor shift, int64_t repeat) {
    auto y = torch::empty_like(x);
    const int64_t rows = x.size(0), columns = x.size(1);
    const float *in = x.data_ptr<float>(), *s = scale.data_ptr<float>(), *t = shift.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t again = 0; again < repeat; again++) {
        for (int64_t row = 0; row < rows; row++) {
            for (int64_t i = 0; i < columns; i++) {
                const float v = in[row * columns + i], a = v * s[i] + t[i];
                const float h = a * std::min(std::max(a + 3.0f, 0.0f), 6.0f) / 6.0f;
                const float c = std::min(std::max(h, -0.25f), 3.0f);
                out[row * columns + i] = c * c + 0.5f * v;
            }
        }
    }
    return y;
}
"""

ext = load_inline(name="repeated_ext", cpp_sources=source, functions=["chain"], extra_cflags=["-O3", "-march=native"])


class ModelNew(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.scale = nn.Parameter(torch.rand(columns) + 0.5)
        self.shift = nn.Parameter(torch.randn(columns))
        self.calls = 0
        self.kept = None

    def forward(self, x):
        self.calls += 1
        shift = self.shift
        if MODE == "wrong":
            shift = shift + 1
        elif MODE == "raises":
            raise RuntimeError("refuses to run")
        elif MODE == "dies":
            os.abort()
        elif MODE == "leaves":
            os._exit(0)
        elif MODE == "writes":
            try:
                open("/etc/hostname", "w")
            except OSError:
                pass
        elif MODE == "wrong when timed" and self.calls > 2:
            shift = shift + 1
        elif MODE == "remembers weights":
            # Right until somebody changes them, which the light check does not.
            self.kept = shift.clone() if self.kept is None else self.kept
            shift = self.kept
        return ext.chain(x.contiguous(), self.scale, shift, REPEAT)
'''


def repeated(repeat: int, mode: str = "honest", broken: bool = False) -> str:
    return variant(SOURCE, {"REPEAT": repeat, "MODE": mode, "BROKEN": broken})
