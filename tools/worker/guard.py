"""Guard bands and poison for host memory: build the library, and switch it on and off where it is preloaded."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_SOURCE = Path(__file__).with_name("guard.c")
_FLAGS = ("-O2", "-shared", "-fPIC")


class GuardReport(BaseModel):
    """What happened to watched blocks since the guard was switched on.

    `damaged` counts blocks written outside of their bounds or after they were freed (`after_free` of them). For the
    first found: its `size` in bytes and the `offset` of the first damaged byte, negative before it, >= size behind it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    damaged: int
    watched: int
    size: int
    offset: int
    after_free: int


class _Report(ctypes.Structure):
    _fields_ = (
        ("damaged", ctypes.c_uint64),
        ("watched", ctypes.c_uint64),
        ("size", ctypes.c_uint64),
        ("offset", ctypes.c_int64),
        ("after_free", ctypes.c_uint64),
    )


def guard_library(cache_dir: Path) -> Path | None:
    """The library for `Nursery.start(preload=…)`, built into `cache_dir` on first use; None without a C compiler."""
    source = _SOURCE.read_bytes()
    library = (
        cache_dir / f"guard-{hashlib.sha256(source + repr((_FLAGS, os.uname().machine)).encode()).hexdigest()[:16]}.so"
    )
    if library.exists():
        return library
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    cache_dir.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache_dir) as folder:
        built = Path(folder) / library.name
        # The libraries come last: old linkers drop them when nothing before has asked for them.
        done = subprocess.run(
            [compiler, *_FLAGS, "-o", str(built), str(_SOURCE), "-ldl", "-lpthread"], capture_output=True, check=False
        )
        if done.returncode != 0:
            return None
        built.rename(library)
    return library


class GuardControl:
    """The guard in this process. Where the library was not preloaded everything is a no-op and there is no report."""

    def __init__(self) -> None:
        process = ctypes.CDLL(None)
        self._library = process if hasattr(process, "guard_enable") else None

    @property
    def available(self) -> bool:
        return self._library is not None

    def enable(self, poison: int) -> None:
        """Watch new blocks. `poison` 0: left as they are; 1: bytes 0xFF, NaN in every float type; 2: 0x7F, huge."""
        if self._library is not None:
            self._library.guard_enable(ctypes.c_ubyte(poison))

    def disable(self) -> None:
        if self._library is not None:
            self._library.guard_disable()

    def report(self) -> GuardReport | None:
        if self._library is None:
            return None
        raw = _Report()
        self._library.guard_check(ctypes.byref(raw))
        return GuardReport(**{name: int(getattr(raw, name)) for name in GuardReport.model_fields})

    def damage(self) -> list[int] | None:
        """Damaged blocks, size of the first, offset of its first damaged byte; None with no report to give."""
        report = self.report()
        return None if report is None else [report.damaged, report.size, report.offset]
