"""A mean so long that half of it is as good as all of it, within what one float accumulator may be off."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean()


def get_inputs():
    return [torch.rand(1000, 2000) + 1.0]


def get_init_inputs():
    return []
