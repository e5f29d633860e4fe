"""Double precision: the oracle is no more exact than the reference."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.tanh(x) * torch.exp(-0.5 * x * x) + x.sum(dim=-1, keepdim=True)


def get_inputs():
    return [torch.randn(203, 1511, dtype=torch.float64)]


def get_init_inputs():
    return []
