"""What the machine code of a kernel does: tensor-core instructions, widths of global accesses, local-memory traffic."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, field

_FUNCTION = re.compile(r"^\s*Function : (?P<name>\S+)")
_INSTRUCTION = re.compile(r"^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+\s+)?(?P<op>[A-Z][A-Z0-9_]*(?:\.[A-Za-z0-9_]+)*)")
# Matrix multiply-accumulate: HMMA fp16/bf16/tf32, IMMA int8, DMMA fp64, BMMA bit, QMMA fp8, OMMA fp4; with G for
# Hopper's warp-group form and UTC…MMA for Blackwell's.
_TENSOR = re.compile(r"^(?:[HIDBQO]G?MMA|UTC[A-Z]*MMA)\b")
_GLOBAL = {"LDG": "load", "STG": "store", "LDGSTS": "copy"}
_BULK = re.compile(r"^(?:UTMALDG|UTMASTG|UBLKCP|UBLKRED|UTMAREDG)\b")
_LOCAL = ("LDL", "STL")
_WIDTHS = {"U8": 8, "S8": 8, "U16": 16, "S16": 16, "64": 64, "128": 128, "256": 256}


@dataclass(slots=True)
class MachineCode:
    """Static counts of one kernel's instructions; `access` is keyed by kind and width in bits, such as `load.128`."""

    tensor: list[str] = field(default_factory=list)
    access: dict[str, int] = field(default_factory=dict)
    local: int = 0


def parse_sass(output: str) -> dict[str, MachineCode]:
    """Facts per function (by mangled name) from the output of `cuobjdump --dump-sass`."""
    found: dict[str, MachineCode] = {}
    access: dict[str, Counter[str]] = {}
    current: str | None = None
    for line in output.splitlines():
        if match := _FUNCTION.match(line):
            name = match["name"]
            found.setdefault(name, MachineCode())
            access.setdefault(name, Counter())
            current = name
            continue
        match = _INSTRUCTION.match(line)
        if match is None or current is None:
            continue
        parts = match["op"].split(".")
        if _TENSOR.match(parts[0]) and match["op"] not in found[current].tensor:
            found[current].tensor.append(match["op"])
        elif parts[0] in _GLOBAL:
            width = next((_WIDTHS[p] for p in parts[1:] if p in _WIDTHS), 32)
            access[current][f"{_GLOBAL[parts[0]]}.{width}"] += 1
        elif _BULK.match(parts[0]):
            access[current]["bulk"] += 1
        elif parts[0] in _LOCAL:
            found[current].local += 1
    for name, counter in access.items():
        found[name].access = dict(sorted(counter.items()))
    return found
