"""Look up a bag of rows per sample and add them: random gathers from a table."""

import torch
import torch.nn as nn

vocabulary = 262144
features = 256
samples = 65536
bag = 32

SMALL = {"vocabulary": 8192, "features": 128, "samples": 1024}


class Model(nn.Module):
    def __init__(self, vocabulary: int, features: int):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)

    def forward(self, indices: torch.Tensor) -> torch.Tensor:
        return self.embedding(indices).sum(dim=1)


def get_inputs():
    return [torch.randint(0, vocabulary, (samples, bag))]


def get_init_inputs():
    return [vocabulary, features]
