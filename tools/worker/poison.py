"""Poison and guard bands for memory that the candidate allocates, on either device.

CPU: the preloaded guard allocator (guard.c) is armed around each checked forward. CUDA: the helper's allocator is
PyTorch's allocator for the whole life of a guarded worker; shared memory is poisoned before each forward.
"""

from __future__ import annotations

import contextlib
import struct
from collections.abc import Generator

from tools.worker.guard import GuardControl

_GUARD_KIND = {0xFF: 1, 0x7F: 2}
_FLOAT_POISON = {0xFF: b"\xff\xff\xff\xff", 0x7F: b"\x7f\x7f\x7f\x7f"}


class Poison:
    """`helper` is the path of the CUDA helper library for a guarded worker, else None. Create before any allocation."""

    def __init__(self, device: str, helper: str | None) -> None:
        self._cuda = None
        if device == "cuda" and helper is not None:
            from tools.worker.cuda_memory import Helper

            self._cuda = Helper(helper)
            self._cuda.install_allocator()
        self._guard = GuardControl() if device == "cpu" else None

    @contextlib.contextmanager
    def armed(self, byte: int) -> Generator[None]:
        """Fill what is allocated inside, and unwritten shared memory, with `byte`; 0 leaves everything as it is."""
        if byte and self._cuda is not None:
            self._cuda.poison(byte)
            self._cuda.poison_shared_memory(struct.unpack("<f", _FLOAT_POISON[byte])[0])
        if byte and self._guard is not None:
            self._guard.enable(_GUARD_KIND[byte])
        try:
            yield
        finally:
            if self._guard is not None:
                self._guard.disable()

    def damage(self) -> list[int] | None:
        """[blocks, size of the first in bytes, offset of its first damaged byte], or None where nothing can be told."""
        if self._cuda is not None:
            return list(self._cuda.damage())
        return self._guard.damage() if self._guard is not None else None
