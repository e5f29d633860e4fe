"""A running average beside an output that needs none of it."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(512))

    def forward(self, x):
        self.average.mul_(0.9).add_(0.1 * torch.exp(-x * x).mean(0))
        return x[:8] * 2.0


def get_inputs():
    return [torch.randn(768, 512)]


def get_init_inputs():
    return []
