"""Two linear layers with a tanh between them: weights and biases of several shapes."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int, hidden: int, outputs: int):
        super().__init__()
        self.first = nn.Linear(features, hidden)
        self.second = nn.Linear(hidden, outputs)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(torch.tanh(self.first(x)))


def get_inputs():
    return [torch.randn(67, 129)]


def get_init_inputs():
    return [129, 75, 51]
