"""Device memory outside of PyTorch: shared buffers by CUDA IPC, L2 persistence, and the helper library.

The runtime is called directly (ctypes on the libcudart that PyTorch has loaded): PyTorch's own way of sharing
storages is pickled and fails across users.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from pathlib import Path
from typing import Any

import torch

HANDLE_BYTES = 64


class CudaError(RuntimeError):
    """A CUDA runtime call failed; the message has its name and the runtime's own words."""


class _Handle(ctypes.Structure):
    _fields_ = [("reserved", ctypes.c_char * HANDLE_BYTES)]


@cache
def _runtime() -> ctypes.CDLL:
    torch.cuda.init()
    _settle_device_count()
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libcudart" in line:
            return ctypes.CDLL(line.split()[-1])
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


def _check(name: str, code: int) -> None:
    if code:
        runtime = _runtime()
        runtime.cudaGetErrorString.restype = ctypes.c_char_p
        raise CudaError(f"{name}: {runtime.cudaGetErrorString(code).decode()} ({code})")


class _Raw:
    """Device bytes with the interface by which PyTorch adopts a foreign pointer."""

    def __init__(self, address: int, size: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size,),
            "typestr": "|u1",
            "data": (address, False),
            "version": 3,
            "strides": None,
        }


def _wrap(address: int, size: int) -> torch.Tensor:
    return torch.as_tensor(_Raw(address, size), device="cuda")


def allocate(size: int) -> tuple[torch.Tensor, str]:
    """`size` bytes by cudaMalloc as a uint8 tensor, and the IPC handle by which another process opens them (hex)."""
    pointer, handle = ctypes.c_void_p(), _Handle()
    if _runtime().cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)):
        # What PyTorch keeps for later may be in the way.
        _runtime().cudaGetLastError()
        torch.cuda.empty_cache()
        _check("cudaMalloc", _runtime().cudaMalloc(ctypes.byref(pointer), ctypes.c_size_t(size)))
    _check("cudaIpcGetMemHandle", _runtime().cudaIpcGetMemHandle(ctypes.byref(handle), pointer))
    return _wrap(int(pointer.value or 0), size), bytes(handle).hex()


def open_shared(handle: str, size: int) -> torch.Tensor:
    """Open another process's allocation of `size` bytes by its handle."""
    pointer, raw = ctypes.c_void_p(), _Handle.from_buffer_copy(bytes.fromhex(handle))
    lazy_peer_access = ctypes.c_uint(1)
    _check("cudaIpcOpenMemHandle", _runtime().cudaIpcOpenMemHandle(ctypes.byref(pointer), raw, lazy_peer_access))
    return _wrap(int(pointer.value or 0), size)


def release(address: int) -> None:
    """Free what `allocate` returned."""
    _check("cudaFree", _runtime().cudaFree(ctypes.c_void_p(address)))


def reset_persisting_l2() -> None:
    """Give up L2 lines that someone has marked as persisting: they survive an ordinary flush."""
    _runtime().cudaCtxResetPersistingL2Cache()


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
