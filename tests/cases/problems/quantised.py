"""Rounds to a grid: a value between two steps may go either way, and both are right."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.clamp(torch.round(x / 0.037), -128.0, 127.0) * 0.037


def get_inputs():
    return [torch.randn(1021, 1499)]


def get_init_inputs():
    return []
