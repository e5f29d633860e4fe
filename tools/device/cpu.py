"""What Linux says of the processor: name, usable cores, caches, vector units, memory. Needs no torch."""

from __future__ import annotations

import math
import os
import platform
import re
from functools import cache
from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")
_CGROUP = Path("/sys/fs/cgroup")


@cache
def _cpuinfo() -> dict[str, str]:
    """Fields of the first processor in /proc/cpuinfo."""
    try:
        text = _CPUINFO.read_text(errors="replace")
    except OSError:
        return {}
    lines = text.partition("\n\n")[0].splitlines()
    return {key.strip(): value.strip() for key, colon, value in (line.partition(":") for line in lines) if colon}


def name() -> str:
    """Such as `AMD EPYC 9554`; the architecture where the kernel gives no name (as on ARM)."""
    return _cpuinfo().get("model name") or platform.processor() or platform.machine()


def usable_cores() -> int:
    """Processors that this process may use: its affinity, cut by the container's quota."""
    cores = len(os.sched_getaffinity(0))
    quota = _read(_CGROUP / "cpu.max").split()
    if len(quota) == 2 and quota[0].isdigit() and quota[1].isdigit():
        cores = min(cores, max(1, math.ceil(int(quota[0]) / int(quota[1]))))
    return cores


def memory_bytes() -> int:
    """Memory of the machine, or the container's limit if that is smaller."""
    total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limit = _read(_CGROUP / "memory.max")
    return min(total, int(limit)) if limit.isdigit() else total


def cache_bytes(level: int) -> int | None:
    """Size of the data (or unified) cache of a level as the first core sees it; None if the kernel does not say."""
    for folder in sorted(_CACHES.glob("index*")):
        if _read(folder / "level") == str(level) and _read(folder / "type") != "Instruction":
            match = re.fullmatch(r"(\d+)([KMG]?)", _read(folder / "size"))
            if match:
                return int(match[1]) << {"": 0, "K": 10, "M": 20, "G": 30}[match[2]]
    return None


def simd() -> str | None:
    """The widest vector extension, with the ones that matter for matrix work, such as `AVX-512 (VNNI, BF16)`."""
    flags = set(_cpuinfo().get("flags", _cpuinfo().get("Features", "")).split())
    extras = {"avx512_vnni": "VNNI", "avx512_bf16": "BF16", "amx_tile": "AMX", "bf16": "BF16", "i8mm": "I8MM"}
    found = ", ".join(name for flag, name in extras.items() if flag in flags)
    widest = {"avx512f": "AVX-512", "avx2": "AVX2", "avx": "AVX", "sve2": "SVE2", "sve": "SVE", "asimd": "NEON"}
    unit = next((name for flag, name in widest.items() if flag in flags), None)
    return f"{unit} ({found})" if unit and found else unit


def clock_mhz() -> int | None:
    """Clock of the first processor at this moment, where the kernel shows it."""
    value = _cpuinfo_now("cpu MHz")
    return round(float(value)) if value else None


def _cpuinfo_now(field: str) -> str | None:
    for line in _read(_CPUINFO).splitlines():
        key, _, value = line.partition(":")
        if key.strip() == field:
            return value.strip()
    return None


def _read(path: Path) -> str:
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
