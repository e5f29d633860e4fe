"""In an untrusted process on the CPU: which functions the time of a forward is spent in."""

from __future__ import annotations

import ctypes
import os
import time
from collections import Counter
from pathlib import Path
from typing import Any

from tools.probe.subject import load
from tools.profiling.symbols import Mapped, Symbols, mapped_files
from tools.worker.poison import Poison
from tools.worker.profile import kinds_of

INTERVAL_US = 1000
SAMPLES = 65536
MOST_ROWS = 64
MOST_ADDRESSES = 512


def measure(args: dict[str, Any], _guard: Poison) -> dict[str, Any]:
    """Sample program counters over about `args["seconds"]` of warm calls.

    Returns `rows` of [symbol or None, file name, whose, samples], `addresses` of [library, address, samples] in the
    candidate's own, the number of `samples`, `calls`, `wall` seconds, and seconds of CPU time: `cpu` of all threads,
    `main` of the one that calls; `asleep` are those in which that one neither ran nor waited for a processor.
    """
    subject = load(args)
    subject.forward()
    library = ctypes.CDLL(str(args["sampler"]))
    buffer = (ctypes.c_ulong * SAMPLES)()
    if library.sampler_start(ctypes.c_long(INTERVAL_US)) != 0:
        raise OSError("the sampler could not be started")
    calls, began, cpu, main, queued = 0, time.monotonic(), time.process_time(), time.thread_time(), _queued()
    try:
        while calls == 0 or time.monotonic() - began < float(args["seconds"]):
            subject.forward()
            calls += 1
    finally:
        wall, cpu, main = time.monotonic() - began, time.process_time() - cpu, time.thread_time() - main
        asleep = max(0.0, wall - main - (_queued() - queued))
        taken = int(library.sampler_stop(buffer, ctypes.c_uint(SAMPLES)))
    rows, addresses = _look_up([int(pc) for pc in buffer[:taken]], subject.libraries.paths)
    return {
        "rows": rows,
        "addresses": addresses,
        "samples": taken,
        "calls": calls,
        "wall": wall,
        "cpu": cpu,
        "main": main,
        "asleep": asleep,
        "cores": len(os.sched_getaffinity(0)),
        "bytes": subject.bytes_touched,
    }


def _queued() -> float:
    """Seconds in which this thread was ready and had no processor; as if always, where the kernel does not tell."""
    try:
        return int(Path("/proc/thread-self/schedstat").read_text().split()[1]) / 1e9
    except (OSError, IndexError, ValueError):
        return time.monotonic()


def _look_up(counters: list[int], own: list[str]) -> tuple[list[list[Any]], list[list[Any]]]:
    """Samples by function, and by address those that lie in the candidate's own libraries."""
    mapped, tables = mapped_files(), dict[str, Symbols]()
    functions: Counter[tuple[str | None, str]] = Counter()
    addresses: Counter[tuple[str, int]] = Counter()
    for pc, count in Counter(counters).items():
        place = next((m for m in mapped if m.start <= pc < m.end), Mapped(0, 0, 0, ""))
        name = None
        if place.path.startswith("/"):
            if place.path not in tables:
                tables[place.path] = Symbols(place.path)
            offset = pc - place.start + place.offset
            name = tables[place.path].name(offset)
            address = tables[place.path].address(offset)
            if place.path in own and address is not None:
                addresses[place.path, address] += count
        functions[name, place.path] += count
    found = functions.most_common()
    kinds = kinds_of([path for (_, path), _ in found], own)
    rows = [
        [None if name is None else _plain(name), Path(path).name[:120], kind, count]
        for ((name, path), count), kind in zip(found, kinds, strict=True)
    ][:MOST_ROWS]
    return rows, [[path, address, count] for (path, address), count in addresses.most_common(MOST_ADDRESSES)]


def _plain(name: str) -> str:
    """As the model knows it: the fast route's headers have a namespace of their own."""
    return name.replace("kfast_api::", "")[:400]
