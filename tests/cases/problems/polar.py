"""Complex numbers from their size and angle."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.polar(torch.exp(x), 3.0 * x)


def get_inputs():
    return [torch.randn(311, 257)]


def get_init_inputs():
    return []
