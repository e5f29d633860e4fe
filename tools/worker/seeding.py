"""Random numbers of a problem or a candidate: PyTorch's, NumPy's and Python's own generators together.

PyTorch's alone would leave inputs, weights and layers that draw from another to chance.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch


def seed_all(seed: int) -> None:
    """Seed every global generator, those of all devices included."""
    torch.manual_seed(seed)
    np.random.seed(seed % 2**32)
    random.seed(seed)


def states(device: str) -> tuple[Any, ...]:
    """What the global generators are at, for comparison."""
    of_device = torch.cuda.get_rng_state().tolist() if device == "cuda" else None
    numpy = np.random.get_state(legacy=False)
    return torch.get_rng_state().tolist(), of_device, repr(numpy), random.getstate()
