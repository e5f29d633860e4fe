"""Whose code the time goes to: the candidate's own binary, or a library it calls.

On the CPU by sampling program counters, on CUDA by the names of the kernels that ran (CUPTI, through torch.profiler).
"""

from __future__ import annotations

import ctypes
import sys
import time
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

_LIBRARIES = ("libtorch", "libmkl", "libdnnl", "libopenblas", "libblas", "liblapack", "libcublas", "libcudnn", "libXNN")
_MATHS = ("libm.so", "libm-", "libmvec")
ENOUGH_SAMPLES = 100
PATIENCE = 6
SAMPLE_US = 1000
BINDING_US = 2.0
BINDING_SHARE = 0.05
"""A call's way through a binding and a wrapper lies in the candidate's binary too: so little of it is no kernel."""

NAME_LENGTH = 8192
"""Long enough for instances of templates that hold templates."""

STRAY, MANY_SAMPLES = 2, 400
"""On a busy machine a sample or two hit that way by chance: among so many they are no kernel either."""


def calls_into(forward: Callable[[], object], modules: list[types.ModuleType]) -> int:
    """How often one `forward()` calls a function that one of `modules` exports.

    Works for functions and for methods of exported classes, as the interpreter itself reports each call into C.
    """
    exported = {id(value) for module in modules for value in vars(module).values() if callable(value)}
    names = {module.__name__ for module in modules}
    count = 0

    def on_call(_frame: types.FrameType, event: str, function: object) -> None:
        nonlocal count
        if event == "c_call" and (id(function) in exported or _owner(function) in names):
            count += 1

    sys.setprofile(on_call)
    try:
        forward()
    finally:
        sys.setprofile(None)
    return count


def _owner(function: object) -> str | None:
    owner = getattr(function, "__self__", None)
    if isinstance(owner, types.ModuleType):
        return owner.__name__
    name = getattr(function, "__module__", None) or getattr(type(owner), "__module__", None)
    return name if isinstance(name, str) else None


def own_samples(counts: dict[str, int]) -> int:
    """Samples in the candidate's own code, or 0 where they are what calling a library through it takes."""
    own, calls = counts["own"], counts.get("calls", 0)
    little = calls > 0 and own * SAMPLE_US / calls < BINDING_US
    if own <= STRAY and counts["library"] >= MANY_SAMPLES:
        return 0
    return 0 if little and own < BINDING_SHARE * (own + counts["library"]) else own


def _undecided(counts: dict[str, int]) -> bool:
    if counts["own"] == 0 or own_samples(counts) == 0:
        return counts["library"] < ENOUGH_SAMPLES
    return counts["own"] <= STRAY and counts["library"] < MANY_SAMPLES


def cpu_shares(forward: Callable[[], object], sampler: Path, own: list[str], seconds: float) -> dict[str, int]:
    """Samples in the candidate's `own` shared objects, in tensor libraries, and elsewhere, over about `seconds`; over
    up to six times as long where none or hardly one lies in its own code, until there are enough to say so.

    The interpreter, the C library and OpenMP's waiting count as `other` and say nothing.
    """
    import torch

    library = ctypes.CDLL(str(sampler))
    counts = {"own": 0, "library": 0, "other": 0, "calls": 0}
    latest = time.monotonic() + PATIENCE * seconds
    threads = torch.get_num_threads()
    # With more, most samples would be of threads that spin until there is work again.
    torch.set_num_threads(1)
    try:
        while _undecided(counts) and time.monotonic() < latest:
            if not _sample(forward, library, own, seconds, counts):
                break
    finally:
        torch.set_num_threads(threads)
    return counts


def _sample(
    forward: Callable[[], object], sampler: ctypes.CDLL, own: list[str], seconds: float, counts: dict[str, int]
) -> bool:
    """Add the samples of about `seconds` to `counts`; False where this machine takes none."""
    buffer = (ctypes.c_ulong * 65536)()
    if sampler.sampler_start(ctypes.c_long(SAMPLE_US)) != 0:
        return False
    calls = 0
    try:
        stop = time.monotonic() + seconds
        while time.monotonic() < stop or calls == 0:
            forward()
            calls += 1
    finally:
        count = int(sampler.sampler_stop(buffer, ctypes.c_uint(65536)))
    ranges = _mapped_ranges()
    for kind in kinds_of([_file_of(int(pc), ranges) for pc in buffer[:count]], own):
        counts[kind] += 1
    counts["calls"] += calls
    return True


def kinds_of(files: Sequence[str], own: Sequence[str]) -> list[str]:
    """Whose code each of the `files` that samples lie in is: `own`, `library` or `other`. The maths library's is the
    candidate's own where that has samples too: it is its loops that call it."""
    maths = "own" if any(path in own for path in files) else "other"

    def kind(path: str) -> str:
        name = Path(path).name
        if path in own:
            return "own"
        if name.startswith(_MATHS):
            return maths
        return "library" if name.startswith(_LIBRARIES) else "other"

    return [kind(path) for path in files]


def _mapped_ranges() -> list[tuple[int, int, str]]:
    ranges: list[tuple[int, int, str]] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and "x" in fields[1]:
            start, end = (int(x, 16) for x in fields[0].split("-"))
            ranges.append((start, end, fields[5]))
    return ranges


def _file_of(pc: int, ranges: list[tuple[int, int, str]]) -> str:
    return next((path for start, end, path in ranges if start <= pc < end), "")


def cuda_kernels(forward: Callable[[], object], repeats: int = 3) -> list[dict[str, Any]]:
    """Kernels that `repeats` calls of `forward()` run on the device: name, calls and total microseconds of each."""
    import torch
    from torch._C._autograd import DeviceType
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(repeats):
            forward()
        torch.cuda.synchronize()
    kernels: dict[str, dict[str, Any]] = {}
    for event in recorded.events() or []:
        if event.device_type != DeviceType.CUDA:
            continue
        row = kernels.setdefault(event.name, {"name": event.name[:NAME_LENGTH], "calls": 0, "us": 0.0})
        row["calls"] += 1
        row["us"] += float(event.time_range.elapsed_us())
    return sorted(kernels.values(), key=lambda row: -row["us"])[:64]
