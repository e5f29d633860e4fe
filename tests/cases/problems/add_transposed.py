"""Two inputs, the second one a transpose that is not contiguous."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.maximum(a, b) - 0.5 * b


def get_inputs():
    return [torch.randn(403, 507), torch.randn(507, 403).t()]


def get_init_inputs():
    return []
