"""Cross entropy of class logits against integer targets, averaged to a scalar."""

import torch
import torch.nn as nn
import torch.nn.functional as F

tokens = 16384
classes = 32768

SMALL = {"tokens": 512, "classes": 4096}


class Model(nn.Module):
    def forward(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(logits, targets)


def get_inputs():
    return [torch.randn(tokens, classes), torch.randint(0, classes, (tokens,))]


def get_init_inputs():
    return []
