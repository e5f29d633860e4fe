"""Returns a tensor and a number."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return x[:4] * 2.0, torch.exp(-x.abs()).sum().item()


def get_inputs():
    return [torch.randn(512, 512)]


def get_init_inputs():
    return []
