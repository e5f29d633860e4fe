"""Two outputs of different type: values and indices."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = torch.max(x, dim=1)
        return values, indices


def get_inputs():
    return [torch.randn(701, 333)]


def get_init_inputs():
    return []
