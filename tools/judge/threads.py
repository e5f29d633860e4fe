"""What the kernel says of another process's threads: what they have run, and whether they stand still."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path

_SCHEDULED = 2
"""The kind of a process's clock (CPUCLOCK_SCHED), with which the kernel makes a clock's number of a process's."""


def times(pid: int) -> dict[int, float]:
    """Microseconds on a processor of each thread of a process so far, by its id."""
    found: dict[int, float] = {}
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, ValueError, IndexError):  # it has just ended
            found[int(task.name)] = int((task / "schedstat").read_text().split()[0]) / 1e3
    return found


def process_time(pid: int) -> float:
    """Microseconds on a processor of a process so far, by all its threads, also those that have ended."""
    with contextlib.suppress(OSError):
        return time.clock_gettime_ns((~pid << 3) | _SCHEDULED) / 1e3
    return 0.0


def stand_still(pid: int) -> bool:
    """Whether all threads of a process are stopped, or gone."""
    for task in Path(f"/proc/{pid}/task").glob("*"):
        with contextlib.suppress(OSError, IndexError):
            if (task / "stat").read_text().rpartition(")")[2].split()[0] not in "TtZX":
                return False
    return True
