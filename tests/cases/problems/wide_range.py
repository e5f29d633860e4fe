"""Outputs over thirty orders of magnitude."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.exp(7.0 * x)


def get_inputs():
    return [torch.randn(307, 601)]


def get_init_inputs():
    return []
