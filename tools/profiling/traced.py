"""In an untrusted process on CUDA: the kernels of a forward, by CUPTI through torch.profiler, and one marked call."""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from tools.probe.subject import load
from tools.worker.poison import Poison

REPEATS = 5
MOST_ROWS = 64
_SHAPES = {"registers per thread": "registers", "shared memory": "shared", "est. achieved occupancy %": "occupancy"}


def measure(args: dict[str, Any], _guard: Poison) -> dict[str, Any]:
    """Trace a few warm calls. Returns `rows` (name, calls and us per forward, launch shape) and `call_us`."""
    subject = load(args)
    subject.forward()
    torch.cuda.synchronize()
    began, calls = time.perf_counter(), 0
    while calls < 3 or (time.perf_counter() - began < 0.3 and calls < 1000):
        subject.forward()
        torch.cuda.synchronize()
        calls += 1
    call_us = (time.perf_counter() - began) / calls * 1e6
    return {"rows": _trace(subject.forward), "call_us": call_us, "bytes": subject.bytes_touched}


def _trace(forward: Callable[[], object]) -> list[dict[str, Any]]:
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CUDA]) as recorded:
        for _ in range(REPEATS):
            forward()
        torch.cuda.synchronize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        recorded.export_chrome_trace(str(path))
        events = json.loads(path.read_text(encoding="utf-8", errors="replace"))["traceEvents"]
    return rows_of(events, REPEATS)


def rows_of(events: list[dict[str, Any]], repeats: int) -> list[dict[str, Any]]:
    """The device's work in a trace, by name, as it is for one of `repeats` forwards, the longest first."""
    rows: dict[str, dict[str, Any]] = {}
    for event in events:
        if event.get("cat") not in ("kernel", "gpu_memcpy", "gpu_memset"):
            continue
        name, shape = str(event.get("name", ""))[:400], event.get("args", {})
        row = rows.setdefault(name, {"name": name, "calls": 0.0, "us": 0.0})
        row["calls"] += 1 / repeats
        row["us"] += float(event.get("dur", 0.0)) / repeats
        if "grid" in shape:
            row |= {"grid": list(shape["grid"])[:3], "block": list(shape.get("block", []))[:3]}
            row |= {ours: float(shape[theirs]) for theirs, ours in _SHAPES.items() if theirs in shape}
    return sorted(rows.values(), key=lambda row: -row["us"])[:MOST_ROWS]


def marked(args: dict[str, Any], _guard: Poison) -> dict[str, Any]:
    """One warm call between the profiler's marks, for an instrument that was told to wait for them."""
    subject = load(args)
    subject.forward()
    torch.cuda.synchronize()
    torch.cuda.profiler.start()
    subject.forward()
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()
    return {}
