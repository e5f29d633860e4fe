"""The largest of the embeddings in each bag; offsets say where bags begin."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, count: int, width: int) -> None:
        super().__init__()
        self.bag = nn.EmbeddingBag(count, width, mode="max")

    def forward(self, indices: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        return self.bag(indices, offsets)


def get_inputs():
    offsets = torch.randint(0, 2000, (200,)).sort().values
    offsets[0] = 0
    return [torch.randint(0, 500, (2000,)), offsets]


def get_init_inputs():
    return [500, 64]
