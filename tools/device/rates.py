"""Measured rates of this device: memory bandwidth of a copy, and matrix products by number format.

Method. The copy reads and writes a buffer of random values much larger than the last-level cache; the bytes of both
count. Matrix products are square, of random normal values (zeros draw less power and run up to 13% faster). Each rate
is the best of several calls after a warm-up: it serves as a floor, which has to be below what any kernel can reach. On
CUDA calls are timed with events, on the CPU with a monotonic clock. Measured once and kept in a JSON file, by device,
driver, torch version and cores.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import torch

from tools.types import DeviceInfo

_FORMATS = {
    "fp64": torch.float64,
    "fp32": torch.float32,
    "tf32": torch.float32,
    "bf16": torch.bfloat16,
    "fp16": torch.float16,
}
_CUDA_COPY_BYTES = 1 << 30
_CPU_COPY_BYTES = 128 << 20
# Square sizes at which the device is busy for milliseconds. Half precision is left out on the CPU: PyTorch has no fast
# path for it there, and a kernel does better by widening it to fp32.
_CUDA_SIZE = {"fp64": 4096, "fp32": 4096, "tf32": 8192, "bf16": 8192, "fp16": 8192}
_CPU_SIZE = {"fp64": 512, "fp32": 1024, "bf16": 1024}
_CALLS = 8
_CPU_SECONDS_PER_RATE = 0.15


def with_rates(info: DeviceInfo, cache_dir: Path) -> DeviceInfo:
    """`info` with `measured_bandwidth` (bytes/s) and `measured_flops` (1/s), from the cache or measured now.

    Measuring takes about a second on the CPU, and on CUDA up to 2 GiB of memory for a moment. A cache that can't be
    read is measured anew; one that can't be written is no error, the rates are only measured again next time.
    """
    path = cache_dir / "rates" / f"{_key(info)}.json"
    try:
        found = json.loads(path.read_text())
        bandwidth, flops = float(found["bandwidth"]), {str(name): float(rate) for name, rate in found["flops"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        bandwidth, flops = _measure_cuda() if info.kind == "cuda" else _measure_cpu(info)
        _write(path, {"device": info.name, "driver": info.driver, "bandwidth": bandwidth, "flops": flops})
    return info.model_copy(update={"measured_bandwidth": bandwidth, "measured_flops": flops})


def _key(info: DeviceInfo) -> str:
    parts = [info.kind, info.name, info.driver, info.cores, torch.__version__, torch.get_num_threads()]
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:24]


def _write(path: Path, content: dict[str, object]) -> None:
    """Replaces the file in one step, so that a reader never sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".tmp", delete=False) as file:
            json.dump(content, file)
        os.replace(file.name, path)  # noqa: PTH105
    except OSError:
        pass


def _measure_cuda() -> tuple[float, dict[str, float]]:
    free, _ = torch.cuda.mem_get_info()
    bandwidth = _copy_cuda(min(_CUDA_COPY_BYTES, free // 4) // 4)
    flops: dict[str, float] = {}
    before = torch.backends.cuda.matmul.allow_tf32
    try:
        for name, size in _CUDA_SIZE.items():
            if 4 * size * size * _FORMATS[name].itemsize <= free:
                torch.backends.cuda.matmul.allow_tf32 = name == "tf32"
                flops[name] = _product_cuda(size, _FORMATS[name])
    finally:
        torch.backends.cuda.matmul.allow_tf32 = before
    torch.cuda.empty_cache()
    return bandwidth, flops


def _copy_cuda(elements: int) -> float:
    source = torch.rand(elements, device="cuda")
    target = torch.empty_like(source)
    return 2 * 4 * elements / _best_cuda(lambda: target.copy_(source))


def _product_cuda(size: int, dtype: torch.dtype) -> float:
    left, right = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
    return 2 * size**3 / _best_cuda(lambda: torch.mm(left, right))


def _best_cuda(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls."""
    events = [torch.cuda.Event(enable_timing=True) for _ in range(_CALLS + 1)]
    for _ in range(3):
        call()
    for event in events[:-1]:
        event.record()
        call()
    events[-1].record()
    torch.cuda.synchronize()
    return min(first.elapsed_time(second) for first, second in itertools.pairwise(events)) * 1e-3


def _measure_cpu(info: DeviceInfo) -> tuple[float, dict[str, float]]:
    elements = max(_CPU_COPY_BYTES, 2 * (info.l3_bytes or 0)) // 4
    source = torch.rand(elements)
    target = torch.ones_like(source)  # written once, so that no page fault is timed
    bandwidth = 2 * 4 * elements / _best_cpu(lambda: target.copy_(source))
    return bandwidth, {name: _product_cpu(size, _FORMATS[name]) for name, size in _CPU_SIZE.items()}


def _product_cpu(size: int, dtype: torch.dtype) -> float:
    left, right = (torch.randn(size, size).to(dtype) for _ in range(2))
    return 2 * size**3 / _best_cpu(lambda: torch.mm(left, right))


def _best_cpu(call: Callable[[], object]) -> float:
    """Seconds of the fastest of several calls, fewer where the first takes long."""
    deadline = time.perf_counter() + _CPU_SECONDS_PER_RATE
    times: list[float] = []
    while len(times) < 2 or (len(times) <= _CALLS and time.perf_counter() < deadline):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return min(times[1:])
