"""A square matrix product in fp32 (PyTorch's default keeps it out of TF32)."""

import torch
import torch.nn as nn

m = 4096
k = 4096
n = 4096

SMALL = {"m": 512, "k": 512, "n": 512}


class Model(nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)


def get_inputs():
    return [torch.randn(m, k), torch.randn(k, n)]


def get_init_inputs():
    return []
