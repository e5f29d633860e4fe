"""Binary cross entropy of probabilities, which the reference refuses outside of [0, 1]."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, p: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return F.binary_cross_entropy(p, target)


def get_inputs():
    return [torch.rand(64, 300), torch.randint(0, 2, (64, 300)).float()]


def get_init_inputs():
    return []
