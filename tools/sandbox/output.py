"""What a child prints, kept within bounds."""

from __future__ import annotations

import os

_HALF = 16 << 10


class Output:
    """The head and the tail of what a child printed; the middle of a flood is dropped as it comes."""

    def __init__(self) -> None:
        self.head = bytearray()
        self.tail = bytearray()
        self.dropped = 0

    def drain(self, fd: int) -> bool:
        """Take what is there, at most a few pipes' worth. False at the end of the stream."""
        for _ in range(16):
            try:
                data = os.read(fd, 1 << 16)
            except BlockingIOError:
                return True
            except OSError:
                return False
            if not data:
                return False
            room = _HALF - len(self.head)
            self.head += data[:room]
            self.tail += data[max(room, 0) :]
            excess = len(self.tail) - _HALF
            if excess > 0:
                self.dropped += excess
                del self.tail[:excess]
        return True

    def text(self) -> str:
        middle = f"\n[{self.dropped} bytes left out]\n".encode() if self.dropped else b""
        return (bytes(self.head) + middle + bytes(self.tail)).decode(errors="replace")
