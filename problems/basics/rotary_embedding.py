"""Rotary position embedding of attention queries: the two halves of each head are rotated by a position's angles."""

import torch
import torch.nn as nn

batch_size = 8
heads = 32
sequence = 4096
head_size = 128

SMALL = {"batch_size": 2, "heads": 16, "sequence": 1024, "head_size": 64}


class Model(nn.Module):
    def __init__(self, sequence: int, head_size: int):
        super().__init__()
        frequencies = 10000.0 ** (-torch.arange(0, head_size, 2) / head_size)
        angles = torch.outer(torch.arange(sequence), frequencies)
        self.register_buffer("cos", torch.cat([angles.cos(), angles.cos()], dim=-1))
        self.register_buffer("sin", torch.cat([angles.sin(), angles.sin()], dim=-1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * self.cos + torch.cat([-second, first], dim=-1) * self.sin


def get_inputs():
    return [torch.randn(batch_size, heads, sequence, head_size)]


def get_init_inputs():
    return [sequence, head_size]
