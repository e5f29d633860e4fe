"""The first half of a transformer's feed-forward block in bf16: linear layer with bias, then GELU."""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 8192
features = 4096
hidden = 16384

SMALL = {"tokens": 512, "features": 1024, "hidden": 2048}


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(features, hidden, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(self.linear(x))


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, hidden]
