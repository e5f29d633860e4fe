"""A 1x1 convolution over large images: a tall, thin matrix product that moves 12.9 GB."""

import torch
import torch.nn as nn

batch_size = 16
in_channels = 64
out_channels = 128
height = 1024
width = 1024

SMALL = {"batch_size": 2, "height": 64, "width": 64}


class Model(nn.Module):
    def __init__(self, in_channels: int, out_channels: int):
        super().__init__()
        self.conv = nn.Conv2d(in_channels, out_channels, kernel_size=1, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


def get_inputs():
    return [torch.rand(batch_size, in_channels, height, width)]


def get_init_inputs():
    return [in_channels, out_channels]
