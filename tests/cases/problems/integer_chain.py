"""Integers alone: no value of an input can be another without asking what it means."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return (x * x + 3 * x) % 1000003


def get_inputs():
    return [torch.randint(0, 1 << 20, (512, 512))]


def get_init_inputs():
    return []
