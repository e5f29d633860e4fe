"""One of two inputs has no elements, and so has one of the outputs."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, none: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.relu(x), none * 2.0


def get_inputs():
    return [torch.randn(77, 31), torch.randn(0, 31)]


def get_init_inputs():
    return []
