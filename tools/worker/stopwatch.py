"""Timing one call. The functions used are bound before the candidate runs, so patching their names changes nothing.

Whoever asks for a call has emptied the caches. CPU: the call is timed by the monotonic clock. CUDA: the device waits a
little, so that launching does not count, then come the start event, the call, the end event, and a device-wide
synchronise followed by a third event, which sees work that the call has put on other streams.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter_ns

import torch

CYCLES_A_US = 2000
"""No GPU's clock is faster."""


class Stopwatch:
    """Times calls on one device."""

    def __init__(self, device: str) -> None:
        self.device = device
        self._now = perf_counter_ns
        if device == "cuda":
            from tools.worker import cuda_memory

            base = torch._C._CudaEventBase
            self._start, self._end, self._drained = (base(enable_timing=True) for _ in range(3))
            self._record, self._elapsed, self._wait = base.record, base.elapsed_time, base.synchronize
            self._device_sync = torch._C._cuda_synchronize
            self._stream = torch.cuda.current_stream
            self._reset_persisting = cuda_memory.reset_persisting_l2
            self._sleep = torch._C._cuda_sleep

    def synchronize(self) -> None:
        """Wait for the whole device."""
        if self.device == "cuda":
            self._device_sync()

    def wait(self, us: float) -> None:
        """Have the current stream of a CUDA device do nothing for `us` microseconds, or a little longer."""
        if self.device == "cuda":
            self._sleep(int(us * CYCLES_A_US))

    def time(self, call: Callable[[], object], head_start_us: float) -> tuple[object, dict[str, float]]:
        """Run `call` once, on CUDA behind a wait of `head_start_us`. Times in microseconds: `us` by the device's clock,
        `host_us` until the call returned, `drained_us` until the whole device was idle."""
        return self._time_cuda(call, head_start_us) if self.device == "cuda" else self._time_cpu(call)

    def _time_cpu(self, call: Callable[[], object]) -> tuple[object, dict[str, float]]:
        start = self._now()
        output = call()
        elapsed = (self._now() - start) / 1e3
        return output, {"us": elapsed, "host_us": elapsed, "drained_us": elapsed}

    def _time_cuda(self, call: Callable[[], object], head_start_us: float) -> tuple[object, dict[str, float]]:
        stream = self._stream()
        self._device_sync()
        self._reset_persisting()
        if head_start_us:
            self.wait(head_start_us)
        self._record(self._start, stream)
        began = self._now()
        output = call()
        host = (self._now() - began) / 1e3
        self._record(self._end, stream)
        self._device_sync()
        self._record(self._drained, stream)
        self._wait(self._drained)
        us = self._elapsed(self._start, self._end) * 1e3
        drained = self._elapsed(self._start, self._drained) * 1e3
        return output, {"us": us, "host_us": host, "drained_us": drained}
