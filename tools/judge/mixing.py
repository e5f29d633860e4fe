"""New values for every timed call, made of draws that are there already."""

from __future__ import annotations

import random

import torch

from tools.judge.passes import swap

BLOCK = 1 << 24
STEPS = (2, 3, 5)


def exchange(target: torch.Tensor, donor: torch.Tensor, order: random.Random) -> None:
    """Swap a half, a third or a fifth of the elements, spread over the whole, between two draws of one input, in place.

    A run of values would leave most rows, heads or tiles as they were in an earlier call, and code that remembers those
    would compute a fraction of its work. Swapping loses no values, and each part moves on by a random distance, so that
    no arrangement comes back. Takes a pass over the memory, or some, which is less than drawing anew.
    """
    if target.shape != donor.shape or target.stride() != donor.stride() or 0 in target.shape:
        target.copy_(donor)
        return
    # Its memory as one row, whatever its strides.
    extent = 1 + sum((n - 1) * s for n, s in zip(target.shape, target.stride(), strict=True))
    mine, theirs = (t.as_strided((extent,), (1,), t.storage_offset()) for t in (target, donor))
    step = min(order.choice(STEPS), max(1, extent // 2))
    first = order.randrange(step)
    for start in range(0, extent, BLOCK):
        a, b = (row[start : start + BLOCK][first::step] for row in (mine, theirs))
        if a.numel():
            swap(a, b, order.randrange(a.numel()))
