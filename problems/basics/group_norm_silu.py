"""Group normalisation followed by SiLU, as in diffusion models."""

import torch
import torch.nn as nn
import torch.nn.functional as F

batch_size = 32
channels = 256
groups = 32
height = 128
width = 128

SMALL = {"batch_size": 4, "channels": 128, "height": 64, "width": 64}


class Model(nn.Module):
    def __init__(self, channels: int, groups: int):
        super().__init__()
        self.norm = nn.GroupNorm(groups, channels)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.silu(self.norm(x))


def get_inputs():
    return [torch.randn(batch_size, channels, height, width)]


def get_init_inputs():
    return [channels, groups]
