"""A bool mask beside a float input; masked places become minus infinity, which the output keeps."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (2.0 * x).masked_fill(mask, float("-inf"))


def get_inputs():
    return [torch.randn(301, 407), torch.rand(301, 407) < 0.3]


def get_init_inputs():
    return []
