"""How many compilers run at once in this process: as many as there are cores, and memory for a stock build each."""

from __future__ import annotations

import os
import re
import threading
from functools import lru_cache
from pathlib import Path

STOCK_BYTES = 3 << 30
"""What nvcc takes at its peak for a source that includes torch's headers."""


def cores() -> int:
    """Cores that this process may use."""
    return max(1, len(os.sched_getaffinity(0)))


def available_memory() -> int:
    """Bytes that can be had without swapping, by /proc/meminfo."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", Path("/proc/meminfo").read_text(encoding="ascii"), re.MULTILINE)
    return int(match.group(1)) << 10 if match else STOCK_BYTES


def count() -> int:
    """Compilers that may run at once; at least one."""
    return max(1, min(cores(), available_memory() // STOCK_BYTES))


@lru_cache(maxsize=1)
def semaphore() -> threading.BoundedSemaphore:
    """Shared by all builds of this process: hold it while a compiler runs."""
    return threading.BoundedSemaphore(count())
