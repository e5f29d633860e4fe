"""Batch normalisation in training mode, then ReLU: statistics over batch and image, running averages updated."""

import torch
import torch.nn as nn

batch_size = 64
channels = 128
height = 128
width = 128

SMALL = {"batch_size": 8, "channels": 32, "height": 64, "width": 64}


class Model(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.norm = nn.BatchNorm2d(channels)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.norm(x))


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels]
