"""A 3x3 convolution with bias and padding, then ReLU6."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def __init__(self, channels: int, filters: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu6(self.conv(x) * 4.0)


def get_inputs():
    return [torch.rand(3, 7, 33, 29)]


def get_init_inputs():
    return [7, 10]
