"""What a worker needs of CUDA's runtime beyond PyTorch: L2 persistence, and the helper library.

The runtime is called directly (ctypes on the libcudart that PyTorch has loaded).
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path

import torch


class CudaError(RuntimeError):
    """A CUDA runtime call failed; the message has its name and the runtime's own words."""


@cache
def runtime() -> ctypes.CDLL:
    """The CUDA runtime that PyTorch has loaded, with CUDA up in this process."""
    torch.cuda.init()
    _settle_device_count()
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line:
            library = ctypes.CDLL(line.split()[-1])
            library.cudaFree(None)  # the first call makes the device's context
            return library
    raise CudaError("libcudart is not loaded: this PyTorch has no CUDA")


def _settle_device_count() -> None:
    """Let PyTorch count devices by the runtime from now on.

    Until CUDA is up a process here has it counted by NVML (tools.nursery.environment), and in a sandboxed child of a
    process that NVML has been in it may see none: `torch.cuda.is_available()` is then false, and whatever takes "the
    current device" for granted fails.
    """
    os.environ.pop("PYTORCH_NVML_BASED_CUDA_CHECK", None)
    if hasattr(torch.cuda, "_cached_device_count"):
        torch.cuda._cached_device_count = torch._C._cuda_getDeviceCount()


def reset_persisting_l2() -> None:
    """Give up L2 lines that someone has marked as persisting: they survive an ordinary flush."""
    runtime().cudaCtxResetPersistingL2Cache()


class Helper:
    """The helper library (cuda_helper.cu), built before the worker starts."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._library = ctypes.CDLL(path)

    def install_allocator(self) -> None:
        """Make PyTorch allocate with guard bands and poison. Must come before the first allocation."""
        allocator = torch.cuda.memory.CUDAPluggableAllocator(self.path, "guarded_alloc", "guarded_free")
        torch.cuda.memory.change_current_allocator(allocator)

    def poison(self, byte: int) -> None:
        """What new allocations are filled with."""
        self._library.guarded_poison(byte)

    def damage(self) -> tuple[int, int, int]:
        """Blocks whose guard bands were written since the last call, size of the first, offset of its first damage."""
        blocks, size, offset = ctypes.c_ulonglong(), ctypes.c_ulonglong(), ctypes.c_longlong()
        code = self._library.guarded_damage(ctypes.byref(blocks), ctypes.byref(size), ctypes.byref(offset))
        if code:
            raise CudaError("the guard bands could not be read")
        return int(blocks.value), int(size.value), int(offset.value)

    def poison_shared_memory(self, value: float) -> None:
        """Fill the shared memory of every multiprocessor with `value`, on the current stream (54 µs on an H200)."""
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        self._library.poison_shared(ctypes.c_float(value), stream)
