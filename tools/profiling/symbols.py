"""Which function an address of this process lies in, by the symbol tables of the files that are mapped.

The dynamic linker knows exported functions only, and the loops of a kernel are mostly in lambdas and in what the
compiler cut out of a function for OpenMP. Those are in a library's full symbol table, so that is read.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tools.build.demangle import demangle

_SYMBOL = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
_SYMTAB, _DYNSYM = 2, 11
_FUNCTION_TYPES = (2, 10)  # STT_FUNC, STT_GNU_IFUNC
_LOAD = 1


@dataclass(frozen=True)
class Mapped:
    """An executable mapping of a file: addresses `start` to `end` hold the file from byte `offset` on."""

    start: int
    end: int
    offset: int
    path: str


def mapped_files() -> list[Mapped]:
    """The executable file mappings of this process."""
    found: list[Mapped] = []
    for line in Path("/proc/self/maps").read_text().splitlines():
        fields = line.split(None, 5)
        if len(fields) == 6 and "x" in fields[1]:
            start, end = (int(x, 16) for x in fields[0].split("-"))
            found.append(Mapped(start, end, int(fields[2], 16), fields[5]))
    return found


class Symbols:
    """The functions of one 64-bit little-endian ELF file. Empty where it is something else or has none."""

    def __init__(self, path: str) -> None:
        self._segments: list[tuple[int, int, int]] = []
        self._table = np.empty(0, _SYMBOL)
        self._names = b""
        try:
            self._read(np.memmap(path, np.uint8, "r"))
        except (OSError, ValueError, IndexError, struct.error):
            self._table = np.empty(0, _SYMBOL)

    def _read(self, data: np.memmap) -> None:
        def part(start: int, size: int) -> bytes:
            return data[start : start + size].tobytes()

        head = part(0, 64)
        if head[:6] != b"\x7fELF\x02\x01":
            return
        segments_at, sections_at = struct.unpack_from("<QQ", head, 32)
        segment_size, segments, section_size, sections = struct.unpack_from("<HHHH", head, 54)
        for i in range(segments):
            kind, _, offset, address, _, size = struct.unpack_from("<IIQQQQ", part(segments_at + i * segment_size, 56))
            if kind == _LOAD:
                self._segments.append((offset, offset + size, address - offset))
        tables: dict[int, tuple[int, int, int]] = {}
        places: list[tuple[int, int]] = []
        for i in range(sections):
            _, kind, _, _, offset, size, link = struct.unpack_from("<IIQQQQI", part(sections_at + i * section_size, 64))
            places.append((offset, size))
            tables.setdefault(kind, (offset, size, link))
        chosen = tables.get(_SYMTAB) or tables.get(_DYNSYM)
        if chosen is None:
            return
        offset, size, link = chosen
        table = np.frombuffer(part(offset, size // _SYMBOL.itemsize * _SYMBOL.itemsize), _SYMBOL)
        kept = table[np.isin(table["info"] & 15, _FUNCTION_TYPES) & (table["section"] != 0)]
        self._table = kept[np.argsort(kept["value"], kind="stable")]
        self._names = part(*places[link])

    def address(self, offset: int) -> int | None:
        """Where byte `offset` of the file lies by the file's own addresses; None where it is not loaded."""
        shift = next((shift for start, end, shift in self._segments if start <= offset < end), None)
        return None if shift is None else offset + shift

    def name(self, offset: int) -> str | None:
        """The function at byte `offset` of the file, demangled; None where no symbol covers it."""
        address = self.address(offset)
        if address is None or not len(self._table):
            return None
        index = int(np.searchsorted(self._table["value"], address, side="right")) - 1
        if index < 0:
            return None
        symbol = self._table[index]
        if address >= int(symbol["value"]) + max(int(symbol["size"]), 1):
            return None
        start = int(symbol["name"])
        text = self._names[start : self._names.index(b"\0", start)].decode("utf-8", "replace")
        return demangle(text)
