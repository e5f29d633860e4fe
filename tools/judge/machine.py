"""The machine that the judge runs on."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from tools.judge import threads

_US_A_TICK = 1e6 / os.sysconf("SC_CLK_TCK")
_BUSY = (0, 1, 2, 5, 6, 7)
"""Columns of /proc/stat in which a processor did something: user, nice, system, interrupts of both kinds, and what the
hypervisor gave to other machines."""


def last_level_cache_bytes() -> int:
    """Size of the largest CPU cache, or 32 MiB where the kernel doesn't tell."""
    sizes = [32 << 20]
    for path in Path("/sys/devices/system/cpu/cpu0/cache").glob("index*/size"):
        text = path.read_text().strip()
        unit = {"K": 1 << 10, "M": 1 << 20, "G": 1 << 30}.get(text[-1:], 1)
        sizes.append(int(text.rstrip("KMG")) * unit)
    return max(sizes)


def usable_threads() -> int:
    return max(1, min(torch.get_num_threads(), len(os.sched_getaffinity(0))))


class Bystanders:
    """How much of the processors that we may use goes to other programs than this one and the processes `ours`, from
    here on."""

    def __init__(self, ours: Sequence[int]) -> None:
        self._ours = ours
        self._began = self._now()

    def share(self) -> float:
        """Between 0 and 1; 0 where the kernel doesn't tell."""
        wall, busy, ours = (now - then for now, then in zip(self._now(), self._began, strict=True))
        return min(max(busy - ours, 0.0) / max(wall * len(os.sched_getaffinity(0)), 1.0), 1.0)

    def _now(self) -> tuple[float, float, float]:
        used = time.process_time_ns() / 1e3 + sum(map(threads.process_time, self._ours))
        return time.perf_counter_ns() / 1e3, busy_us(Path("/proc/stat"), os.sched_getaffinity(0)), used


def busy_us(stat: Path, processors: set[int]) -> float:
    """Microseconds that these processors have worked since the machine was started; 0 where the kernel doesn't tell."""
    try:
        names = {f"cpu{number}" for number in processors}
        rows = [line.split() for line in stat.read_text().splitlines()]
        return _US_A_TICK * sum(int(row[1 + column]) for row in rows if row and row[0] in names for column in _BUSY)
    except (OSError, ValueError, IndexError):
        return 0.0
