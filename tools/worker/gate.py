"""A gate across a CUDA stream, which the judge opens.

The stream runs a host function that waits for a semaphore in memory that both processes share: what is launched behind
it waits. The function is the C library's own, so no Python runs in the driver's thread.
"""

from __future__ import annotations

import ctypes
from functools import cache

import torch

from tools.worker.arena import Arena
from tools.worker.cuda_memory import CudaError, runtime

_QUEUED_AT = 128
BYTES = 4096


@cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)


class Gate:
    """Either end of a gate in an arena of `BYTES` in host memory."""

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._semaphore = ctypes.c_void_p(arena.address)
        self._queued = arena.bytes[_QUEUED_AT : _QUEUED_AT + 1]
        self._wait = ctypes.cast(_libc().sem_wait, ctypes.c_void_p)

    def shut(self) -> None:
        """For the judge, before it asks for anything behind the gate."""
        _libc().sem_init(self._semaphore, 1, 0)
        self._queued.zero_()

    @property
    def queued(self) -> bool:
        """For the judge: whether the worker has said that all it launches is launched."""
        return bool(self._queued.item())

    def open(self) -> None:
        """For the judge: let go of what waits."""
        _libc().sem_post(self._semaphore)

    def hold(self, stream: torch.cuda.Stream) -> None:
        """For the worker: have what is launched on `stream` from now on wait until the gate is opened."""
        code = runtime().cudaLaunchHostFunc(ctypes.c_void_p(stream.cuda_stream), self._wait, self._semaphore)
        if code:
            raise CudaError(f"cudaLaunchHostFunc failed with {code}")

    def say_queued(self) -> None:
        """For the worker: all is launched."""
        self._queued.fill_(1)
