"""A matrix product of two inputs, no dimension a multiple of anything."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(131, 517), torch.randn(517, 211)]


def get_init_inputs():
    return []
