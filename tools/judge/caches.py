"""Caches emptied by the judge itself, from its own process: no candidate decides how cold they are."""

from __future__ import annotations

from functools import cache
from typing import Literal

import torch

from tools.judge.machine import last_level_cache_bytes
from tools.worker.cuda_memory import reset_persisting_l2


class Caches:
    """The last-level cache of a device: the CPU's, or the L2 of a GPU, which the processes of a device share."""

    def __init__(self, device: Literal["cuda", "cpu"]) -> None:
        self._cuda = device == "cuda"
        size = torch.cuda.get_device_properties("cuda").L2_cache_size if self._cuda else last_level_cache_bytes()
        self._lines = torch.ones(2 * size // 4, dtype=torch.float32, device=device)
        self._sink = torch.zeros((), dtype=torch.float32, device=device)

    def empty(self) -> None:
        """Push everything out. Written and then read: a write alone leaves dirty lines, whose write-back would be
        billed to the call. Returns when it is done."""
        if self._cuda:
            reset_persisting_l2()
        self._lines.fill_(1.0)
        self._sink = self._lines.sum()
        if self._cuda:
            torch.cuda.synchronize()


@cache
def caches(device: Literal["cuda", "cpu"]) -> Caches:
    """The same for all sessions of a judge."""
    return Caches(device)
