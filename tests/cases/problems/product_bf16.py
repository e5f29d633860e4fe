"""A matrix product in bfloat16 with a bias, the output in bfloat16."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b) + bias


def get_inputs():
    half = torch.bfloat16
    return [torch.randn(93, 517).to(half), torch.randn(517, 129).to(half), torch.randn(129).to(half)]


def get_init_inputs():
    return []
