"""One element in, one out."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sin(x) * 2.0


def get_inputs():
    return [torch.randn(1)]


def get_init_inputs():
    return []
