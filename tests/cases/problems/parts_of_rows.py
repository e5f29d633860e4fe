"""Rows reversed, and their first ten values as a view."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"reversed": x.flip(-1), "head": x[:, :10]}


def get_inputs():
    return [torch.randn(128, 4096)]


def get_init_inputs():
    return []
