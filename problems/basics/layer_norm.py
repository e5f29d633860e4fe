"""Layer normalisation over the last dimension, with weight and bias that are neither one nor zero."""

import torch
import torch.nn as nn

rows = 32768
features = 4096

SMALL = {"rows": 2048, "features": 1024}


class Model(nn.Module):
    def __init__(self, features: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        nn.init.uniform_(self.norm.weight, 0.5, 1.5)
        nn.init.normal_(self.norm.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x)


def get_inputs():
    return [torch.randn(rows, features)]


def get_init_inputs():
    return [features]
