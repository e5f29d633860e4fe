"""Where a worker keeps inputs and outputs: in memory of its own, at another place from call to call."""

from __future__ import annotations

import ctypes
import random
from collections.abc import Sequence

import torch

from tools.worker.stopwatch import Stopwatch

_move, _use_threads = ctypes.memmove, torch.set_num_threads
HELD = 4
HELD_BYTES = {"cpu": 0, "cuda": 1 << 30}
"""Sets of inputs, or of outputs, that are kept after a timed call, and how large one may be. On the CPU they would have
the heap grow under the calls to come, and a page touched for the first time costs more than where it lies."""

LATE_US = 5000.0
"""For so long the current stream has other work before inputs arrive: longer than a forward takes to be launched."""


class Ring:
    """What is done with is kept for a while, and one of the kept is let go of at random, so that what is allocated next
    lies elsewhere than the last: where memory lies is worth some percent, and may not be luck of the process."""

    def __init__(self, device: str) -> None:
        self._most = HELD_BYTES[device]
        self._held: list[list[torch.Tensor]] = []
        self._random = random.Random()

    def hold(self, tensors: list[torch.Tensor]) -> None:
        """Keep one more set, unless it is too large, and drop another where there are too many."""
        if 0 < sum(t.nbytes for t in tensors) <= self._most:
            self._held.append(tensors)
        if len(self._held) > HELD:
            self._held.pop(self._random.randrange(len(self._held)))


def copy(source: torch.Tensor, target: torch.Tensor) -> None:
    """Copy values, on the CPU by this thread alone: how long it takes does not hang on what others are at then."""
    if source.device.type != "cpu" or 0 in source.shape:
        target.copy_(source)
        return
    alike = (source.dtype, source.shape, source.stride()) == (target.dtype, target.shape, target.stride())
    if not alike or source.is_conj() or source.is_neg():
        threads = torch.get_num_threads()
        _use_threads(1)
        try:
            target.copy_(source)
        finally:
            _use_threads(threads)
        return
    extent = 1 + sum((n - 1) * s for n, s in zip(source.shape, source.stride(), strict=True))
    _move(target.data_ptr(), source.data_ptr(), extent * source.element_size())


def late(views: Sequence[torch.Tensor], stopwatch: Stopwatch) -> list[torch.Tensor]:
    """Copies whose values arrive on the current stream only after this has returned: work on a stream that does not
    wait for this one reads what was there before, which is NaN, and zero in integers."""
    flat = [in_one_row(view) for view in views]
    found = [torch.full_like(row, float("nan") if row.is_floating_point() or row.is_complex() else 0) for row in flat]
    stopwatch.synchronize()
    stopwatch.wait(LATE_US)
    for mine, row in zip(found, flat, strict=True):
        mine.copy_(row)
    return [mine.as_strided(view.shape, view.stride()) for mine, view in zip(found, views, strict=True)]


def placed(view: torch.Tensor) -> torch.Tensor:
    """A copy with the same strides, also where they leave gaps or overlap."""
    row = in_one_row(view)
    made = torch.empty_like(row)
    copy(row, made)
    return made.as_strided(view.shape, view.stride())


def in_one_row(view: torch.Tensor) -> torch.Tensor:
    """All memory from the first element of `view` to the last, in one row."""
    extent = 0 if 0 in view.shape else 1 + sum((n - 1) * s for n, s in zip(view.shape, view.stride(), strict=True))
    return view.as_strided((extent,), (1,), view.storage_offset())
