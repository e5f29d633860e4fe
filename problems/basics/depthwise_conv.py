"""A 3x3 depthwise convolution with bias: a stencil, bound by memory."""

import torch
import torch.nn as nn

batch_size = 32
channels = 128
height = 256
width = 256

SMALL = {"batch_size": 4, "channels": 64, "height": 112, "width": 112}


class Model(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, kernel_size=3, padding=1, groups=channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels]
