"""A linear layer on a handful of tokens, as when a language model decodes: bound by reading the weights."""

import torch
import torch.nn as nn

tokens = 16
features = 8192
hidden = 28672

SMALL = {"tokens": 8, "features": 2048, "hidden": 8192}


class Model(nn.Module):
    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.linear = nn.Linear(features, hidden, bias=False, dtype=torch.bfloat16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x)


def get_inputs():
    return [torch.randn(tokens, features, dtype=torch.bfloat16)]


def get_init_inputs():
    return [features, hidden]
