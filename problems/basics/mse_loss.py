"""Mean squared error of two large tensors: a reduction to one scalar."""

import torch
import torch.nn as nn

rows = 16384
columns = 8192

SMALL = {"rows": 1024, "columns": 2048}


class Model(nn.Module):
    def forward(self, prediction: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return torch.mean((prediction - target) ** 2)


def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]


def get_init_inputs():
    return []
