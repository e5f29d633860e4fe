"""Batch normalisation in training mode as it is made by default, then ReLU: weights and statistics start out alike."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.bn = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.bn(x))


def get_inputs():
    return [torch.rand(6, 13, 7, 9)]


def get_init_inputs():
    return [13]
