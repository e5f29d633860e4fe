"""Dropout in training mode, then a square: random numbers are part of the answer."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, p: float):
        super().__init__()
        self.dropout = nn.Dropout(p)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.dropout(x).square() + 1.0


def get_inputs():
    return [torch.randn(301, 403)]


def get_init_inputs():
    return [0.3]
