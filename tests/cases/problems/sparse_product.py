"""A sparse matrix in rows (CSR) times a dense one."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, rows: torch.Tensor, columns: torch.Tensor, values: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        counts = rows.diff()
        row = torch.repeat_interleave(torch.arange(counts.numel(), device=x.device), counts)
        return torch.zeros(counts.numel(), x.size(1), device=x.device).index_add_(0, row, values[:, None] * x[columns])


def get_inputs():
    counts = torch.bincount(torch.randint(0, 200, (3000,)), minlength=200)
    rows = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    return [rows, torch.randint(0, 200, (3000,)), torch.randn(3000), torch.randn(200, 16)]


def get_init_inputs():
    return []
