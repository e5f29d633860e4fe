"""Integers so large that rounding changes many of them by some units."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.floor(torch.exp(x) * 1e7).to(torch.int64)


def get_inputs():
    return [torch.randn(307, 401)]


def get_init_inputs():
    return []
