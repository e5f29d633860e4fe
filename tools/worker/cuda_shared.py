"""Device memory that several processes map: made in one, passed as a file descriptor, mapped in the others.

By CUDA's virtual memory management, in ctypes on the driver. Memory opened through legacy CUDA IPC is mapped in smaller
pages: on an H200 a kernel that reads along a stride of 4 MB took 5.7 to 26 ms on it, and 3.8 ms on its own. PyTorch's
own way of sharing storages is pickled and fails across users.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from typing import Any

import torch

from tools.worker.cuda_memory import CudaError, runtime

# Values of enumerations in cuda.h.
_PINNED = 1
_DEVICE = 1
_FILE_DESCRIPTOR = 1
_READ_WRITE = 3
_OUT_OF_MEMORY = 2


class _Location(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int), ("id", ctypes.c_int)]


class _Properties(ctypes.Structure):
    """CUmemAllocationProp."""

    _fields_ = [
        ("type", ctypes.c_int),
        ("handle_types", ctypes.c_int),
        ("location", _Location),
        ("win32_metadata", ctypes.c_void_p),
        ("flags", ctypes.c_ubyte * 8),
    ]


class _Access(ctypes.Structure):
    """CUmemAccessDesc."""

    _fields_ = [("location", _Location), ("flags", ctypes.c_int)]


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


def allocate(size: int) -> tuple[torch.Tensor, int]:
    """`size` bytes as a uint8 tensor, and the descriptor by which another process maps them.

    Raises CudaError where the device has no room, or can't share memory in this way.
    """
    driver, properties = _driver(), _properties()
    handle, length = ctypes.c_ulonglong(), ctypes.c_size_t(_rounded(size))
    code = driver.cuMemCreate(ctypes.byref(handle), length, ctypes.byref(properties), ctypes.c_ulonglong(0))
    if code == _OUT_OF_MEMORY:
        # What PyTorch keeps for later may be in the way.
        torch.cuda.empty_cache()
        code = driver.cuMemCreate(ctypes.byref(handle), length, ctypes.byref(properties), ctypes.c_ulonglong(0))
    _check("cuMemCreate", code)
    descriptor = ctypes.c_int(-1)
    exported = driver.cuMemExportToShareableHandle(
        ctypes.byref(descriptor), handle, ctypes.c_int(_FILE_DESCRIPTOR), ctypes.c_ulonglong(0)
    )
    try:
        _check("cuMemExportToShareableHandle", exported)
        return _mapped(handle, size), descriptor.value
    finally:
        driver.cuMemRelease(handle)  # a mapping holds the memory by itself


def open_shared(descriptor: int, size: int) -> torch.Tensor:
    """Map another process's `size` bytes. The descriptor is closed: what is mapped stays."""
    handle = ctypes.c_ulonglong()
    imported = _driver().cuMemImportFromShareableHandle(
        ctypes.byref(handle), ctypes.c_void_p(descriptor), ctypes.c_int(_FILE_DESCRIPTOR)
    )
    os.close(descriptor)
    _check("cuMemImportFromShareableHandle", imported)
    try:
        return _mapped(handle, size)
    finally:
        _driver().cuMemRelease(handle)


def release(address: int, size: int) -> None:
    """Unmap what `allocate` or `open_shared` has mapped."""
    length = ctypes.c_size_t(_rounded(size))
    _check("cuMemUnmap", _driver().cuMemUnmap(ctypes.c_ulonglong(address), length))
    _check("cuMemAddressFree", _driver().cuMemAddressFree(ctypes.c_ulonglong(address), length))


def _mapped(handle: ctypes.c_ulonglong, size: int) -> torch.Tensor:
    driver, address, length = _driver(), ctypes.c_ulonglong(), ctypes.c_size_t(_rounded(size))
    zero = ctypes.c_ulonglong(0)
    access = _Access(_properties().location, _READ_WRITE)
    reserved = driver.cuMemAddressReserve(ctypes.byref(address), length, ctypes.c_size_t(0), zero, zero)
    _check("cuMemAddressReserve", reserved)
    _check("cuMemMap", driver.cuMemMap(address, length, ctypes.c_size_t(0), handle, zero))
    _check("cuMemSetAccess", driver.cuMemSetAccess(address, length, ctypes.byref(access), ctypes.c_size_t(1)))
    return torch.as_tensor(_Raw(address.value, size), device="cuda")


def _properties() -> _Properties:
    location = _Location(_DEVICE, torch.cuda.current_device())
    return _Properties(type=_PINNED, handle_types=_FILE_DESCRIPTOR, location=location)


def _rounded(size: int) -> int:
    granularity = _granularity()
    return (size + granularity - 1) // granularity * granularity


@cache
def _granularity() -> int:
    found, properties = ctypes.c_size_t(), _properties()
    code = _driver().cuMemGetAllocationGranularity(ctypes.byref(found), ctypes.byref(properties), ctypes.c_int(1))
    _check("cuMemGetAllocationGranularity", code)
    return found.value


@cache
def _driver() -> ctypes.CDLL:
    runtime()
    return ctypes.CDLL("libcuda.so.1")


def _check(name: str, code: int) -> None:
    if code:
        text = ctypes.c_char_p()
        _driver().cuGetErrorString(ctypes.c_int(code), ctypes.byref(text))
        raise CudaError(f"{name}: {(text.value or b'unknown error').decode()} ({code})")
