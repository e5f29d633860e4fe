"""Finds the programs and libraries that memory checks need."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path


@cache
def address_runtimes(cxx: str) -> list[Path]:
    """What must be in the process before all else: gcc's AddressSanitizer, then the C++ runtime. Empty without one.

    The second because AddressSanitizer looks for `__cxa_throw` when it starts, and fails at the first throw otherwise.
    clang's is not taken: it links its runtime into programs and not into libraries.
    """
    if "clang" in _output([cxx, "--version"]):
        return []
    paths = [Path(_output([cxx, f"-print-file-name={name}"]).strip()) for name in ("libasan.so", "libstdc++.so.6")]
    return [path.resolve() for path in paths] if all(path.is_absolute() and path.exists() for path in paths) else []


def find_compute_sanitizer(toolkit: Path | None) -> Path | None:
    """The program: of the toolkit that compiles, on PATH, or of the toolkit at its usual place."""
    places = [toolkit / "bin" / "compute-sanitizer"] if toolkit else []
    if found := shutil.which("compute-sanitizer"):
        places.append(Path(found))
    places += [
        Path("/usr/local/cuda/bin/compute-sanitizer"),
        Path("/usr/local/cuda/compute-sanitizer/compute-sanitizer"),
    ]
    return next((place for place in places if os.access(place, os.X_OK)), None)


def _output(argv: list[str]) -> str:
    try:
        done = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout
