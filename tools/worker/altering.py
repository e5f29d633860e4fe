"""New values for each call of a row, at the cost of a small part of a pass over memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from tools.worker.placing import in_one_row

INTEGERS = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
STEPS = (48, 80)
"""One element in so many changes before each call: some in every row, tile and head."""


class Alterations:
    """Swaps elements of `tensors` with those at the same places in `others`, which were drawn like them, so that
    nothing that was computed for one call serves another. `which` are the indices of those that may be changed. The
    same `seed` makes the same changes in every process."""

    def __init__(
        self, tensors: Sequence[torch.Tensor], others: Sequence[torch.Tensor], which: Sequence[int], seed: int
    ) -> None:
        self._pairs = [(_bits(tensors[i]), _bits(others[i])) for i in which]
        self._random = random.Random(seed)

    def next(self) -> None:
        """Change all of them once more."""
        step = self._random.randint(*STEPS)
        first = self._random.random()
        for mine, theirs in self._pairs:
            stride = min(step, max(1, mine.numel() // 2))
            here, there = (row[int(first * stride) :: stride] for row in (mine, theirs))
            # With no memory in between: a part of what was cached for an output would leave no room for the next.
            here.bitwise_xor_(there)
            there.bitwise_xor_(here)
            here.bitwise_xor_(there)


def _bits(tensor: torch.Tensor) -> torch.Tensor:
    return in_one_row(tensor).view(INTEGERS[tensor.element_size()])
