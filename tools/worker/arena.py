"""Shared buffers: the judge owns them, a worker opens them, and tensors are views of raw bytes.

On the CPU a buffer is an anonymous memory file, on CUDA an allocation of the driver's; in both cases the worker is
given a descriptor of it. Neither side ever unpickles anything to get at a tensor.
"""

from __future__ import annotations

import fcntl
import mmap
import os
from typing import Any, Literal

import torch

from tools.worker.trees import dtype_of

ALIGNMENT = 512
GUARD = 4096
"""Bytes of canary on both sides of each tensor in an arena."""

CANARY = 0xFF
"""All ones is NaN in every floating type, so an overread that matters shows in the output."""

POPULATED_BYTES = 256 << 20
Export = dict[str, Any]


class Arena:
    """A shared buffer as one uint8 tensor, `bytes`, on its device."""

    def __init__(self, data: torch.Tensor, export: Export, fd: int | None = None, keep: object = None) -> None:
        self.bytes = data
        self.export = export
        self.fd = fd
        self._keep = keep

    @property
    def size(self) -> int:
        return self.bytes.numel()

    @property
    def address(self) -> int:
        return self.bytes.data_ptr()

    def view(self, offset: int, shape: list[int], stride: list[int], dtype: torch.dtype) -> torch.Tensor:
        """A tensor over this buffer's bytes from `offset`; ValueError when it would reach outside of it."""
        item = dtype.itemsize
        extent = 0 if 0 in shape else 1 + sum((n - 1) * s for n, s in zip(shape, stride, strict=True))
        if offset < 0 or offset % item or any(s < 0 for s in stride) or offset + extent * item > self.size:
            raise ValueError("a tensor outside of its buffer")
        flat = self.bytes[offset : offset + extent * item].view(dtype)
        return flat.as_strided(shape, stride)

    @staticmethod
    def create(device: Literal["cuda", "cpu"], size: int) -> Arena:
        """Allocate `size` bytes. On CUDA the memory is outside of PyTorch's caching allocator."""
        size = max(size, ALIGNMENT)
        if device == "cpu":
            fd = os.memfd_create("arena", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
            os.ftruncate(fd, size)
            # Or a worker could shrink the file under the judge, which then dies of a bus error.
            fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
            mapped = mmap.mmap(fd, size)
            return Arena(torch.frombuffer(mapped, dtype=torch.uint8), {"device": device, "size": size}, fd, mapped)
        from tools.worker import cuda_shared

        data, fd = cuda_shared.allocate(size)
        return Arena(data, {"device": device, "size": size}, fd)

    @staticmethod
    def open(export: Export, fd: int) -> Arena:
        """Open a buffer that the judge created, from what its `export` says and its descriptor, which is taken over."""
        if export["device"] == "cpu":
            size = int(export["size"])
            # A page that is touched for the first time costs time, which would be some call's.
            now = mmap.MAP_POPULATE if size <= POPULATED_BYTES else 0
            mapped = mmap.mmap(fd, size, flags=mmap.MAP_SHARED | now)
            return Arena(torch.frombuffer(mapped, dtype=torch.uint8), export, fd, mapped)
        from tools.worker import cuda_shared

        return Arena(cuda_shared.open_shared(fd, int(export["size"])), export)

    def close(self) -> None:
        """Release the buffer; tensors over it must not be used afterwards."""
        if self.fd is not None:
            os.close(self.fd)
            self.fd = None
        if self.bytes.device.type == "cuda":
            from tools.worker import cuda_shared

            cuda_shared.release(self.address, self.size)


class Layout:
    """Places tensors one after another in an arena, each between two guard bands."""

    def __init__(self, start: int = 0) -> None:
        self.end = start

    def place(self, tensor: torch.Tensor) -> dict[str, Any]:
        """Reserve room for a tensor like `tensor` and describe it; strides are kept where they are dense."""
        stride = list(tensor.stride())
        if not _dense(tensor):
            stride = list(torch.empty(tensor.shape, device="meta").stride())
        extent = 0 if tensor.numel() == 0 else 1 + sum((n - 1) * s for n, s in zip(tensor.shape, stride, strict=True))
        offset = _align(self.end + GUARD)
        self.end = offset + extent * tensor.dtype.itemsize + GUARD
        return {
            "offset": offset,
            "shape": list(tensor.shape),
            "stride": stride,
            "dtype": str(tensor.dtype).removeprefix("torch."),
            "bytes": extent * tensor.dtype.itemsize,
        }


def tensor_at(arena: Arena, place: dict[str, Any]) -> torch.Tensor:
    """The tensor that `Layout.place` described."""
    return arena.view(place["offset"], place["shape"], place["stride"], dtype_of(place["dtype"]))


def guards(arena: Arena, place: dict[str, Any]) -> tuple[torch.Tensor, torch.Tensor]:
    """The guard bands before and behind a placed tensor, as uint8 tensors."""
    start, end = place["offset"], place["offset"] + place["bytes"]
    return arena.bytes[start - GUARD : start], arena.bytes[end : end + GUARD]


def _align(offset: int) -> int:
    return (offset + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT


def _dense(tensor: torch.Tensor) -> bool:
    """Whether each element has an address of its own and none are skipped (a transpose is, an expand is not)."""
    if tensor.numel() == 0:
        return True
    order = sorted(range(tensor.dim()), key=lambda d: tensor.stride(d))
    expected = 1
    for d in order:
        if tensor.size(d) == 1:
            continue
        if tensor.stride(d) != expected:
            return False
        expected *= tensor.size(d)
    return True
