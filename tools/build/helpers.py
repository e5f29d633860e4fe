"""Small libraries of our own that worker and judge need, compiled on first use and kept in the cache by content."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.worker.guard import guard_library

_WORKER = Path(__file__).parent.parent / "worker"
_JUDGE = Path(__file__).parent.parent / "judge"


@dataclass(frozen=True)
class HelperLibraries:
    """Paths of the built libraries; None where the compiler for one is missing."""

    guard: Path | None
    sampler: Path | None
    cuda_helper: Path | None
    passes: Path | None


def helper_libraries(cache_dir: Path, device: str) -> HelperLibraries:
    """Build what is not in the cache yet: about 0.3 s for the C ones, 2 s for the CUDA ones."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    flags = ["-O2", "-shared", "-fPIC", "-pthread"]
    c = [compiler, *flags] if compiler else None
    cuda: list[str] | None = None
    if device == "cuda":
        from tools.build.toolchain import find_nvcc

        nvcc = find_nvcc()
        cuda = (
            [str(nvcc.path), "-O2", "-shared", "-Xcompiler", "-fPIC", "-cudart", "shared", "-arch=native"]
            if nvcc
            else None
        )
    sources = [_WORKER / "sampler.c", _WORKER / "cuda_helper.cu", _JUDGE / "passes.cu"]
    with ThreadPoolExecutor() as pool:
        sampler, helper, passes = pool.map(_build, sources, [c, cuda, cuda], [cache_dir] * len(sources))
    return HelperLibraries(guard_library(cache_dir / "helpers"), sampler, helper, passes)


def _build(source: Path, command: list[str] | None, cache_dir: Path) -> Path | None:
    if command is None:
        return None
    key = hashlib.sha256(repr(command).encode() + source.read_bytes()).hexdigest()[:20]
    target = cache_dir / "helpers" / f"{source.stem}-{key}.so"
    if target.exists():
        return target
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent) as folder:
        built = Path(folder) / "out.so"
        done = subprocess.run([*command, str(source), "-o", str(built)], capture_output=True, timeout=120)
        if done.returncode != 0:
            return None
        built.replace(target)
    return target
