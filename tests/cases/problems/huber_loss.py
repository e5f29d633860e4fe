"""A mean loss over two inputs: a scalar that hardly varies from one draw of the inputs to the next."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.smooth_l1_loss(x, y)


def get_inputs():
    return [torch.rand(700, 901), torch.rand(700, 901)]


def get_init_inputs():
    return []
