"""New values for each call of a row, at the cost of a small part of a pass over memory."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from tools.worker.placing import in_one_row

STEPS = (48, 80)
"""One element in so many changes before each call: some in every row, tile and head."""


class Alterations:
    """Swaps elements of `tensors` with those at the same places in `others`, which were drawn like them, so that
    nothing that was computed for one call serves another. `which` are the indices of those that may be changed. The
    same `seed` makes the same changes in every process."""

    def __init__(
        self, tensors: Sequence[torch.Tensor], others: Sequence[torch.Tensor], which: Sequence[int], seed: int
    ) -> None:
        self._pairs = [(in_one_row(tensors[i]), in_one_row(others[i])) for i in which]
        # Memory that is asked for in a row is asked of the device the first time, and takes longer than a call.
        self._spare = [
            torch.empty(mine.numel() // STEPS[0] + 4, dtype=mine.dtype, device=mine.device) for mine, _ in self._pairs
        ]
        self._random = random.Random(seed)

    def next(self) -> None:
        """Change all of them once more."""
        step = self._random.randint(*STEPS)
        first = self._random.random()
        for (mine, theirs), spare in zip(self._pairs, self._spare, strict=True):
            stride = min(step, max(1, mine.numel() // 2))
            here, there = (row[int(first * stride) :: stride] for row in (mine, theirs))
            before = spare[: here.numel()]
            before.copy_(here)
            here.copy_(there)
            there.copy_(before)
