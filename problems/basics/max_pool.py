"""Max pooling with overlapping windows and padding."""

import torch
import torch.nn as nn

batch_size = 64
channels = 64
height = 224
width = 224

SMALL = {"batch_size": 4, "channels": 16}


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.pool = nn.MaxPool2d(kernel_size=3, stride=2, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pool(x)


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return []
