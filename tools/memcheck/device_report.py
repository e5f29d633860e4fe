"""Reads what compute-sanitizer's tools print, and keeps what lies in the candidate's own kernels.

Written after the output of compute-sanitizer 2022 to 2025: a block of lines for each error, each line behind
`=========`, the first one saying what it is, the next one where.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field

from tools.judge.ownership import is_own
from tools.memcheck.records import Check, MemoryFinding
from tools.probe.places import Place, Places

_MARK = "========="
_INVALID = re.compile(
    r"^Invalid (?P<space>__\w+__|\w+) (?P<access>read|write|atomic\w*) of size (?P<size>[\d,]+) bytes"
)
_UNINITIALIZED = re.compile(r"^Uninitialized (?P<space>__\w+__|\w+) memory read of size (?P<size>[\d,]+) bytes")
_BARRIER = re.compile(r"^Barrier error detected\. ?(?P<what>.*)")
_RACE = re.compile(r"^(?P<severity>\w+): Race reported between (?P<first>\w+) access (?P<at>at .+)$")
_SECOND = re.compile(r"^and (?P<second>\w+) access (?P<at>at .+?)(?: \[(?P<hazards>[\d,]+) hazards?\])?$")
# Newer: at kernel(float *)+0x1a0 in file.cu:12. Older: at 0x1a0 in file.cu:12:kernel(float*). Without line information
# the file is missing.
_NEW_PLACE = re.compile(r"^at (?P<function>.+?)[+:]0x[0-9a-f]+(?: in (?P<file>.+):(?P<line>\d+))?$")
_OLD_PLACE = re.compile(
    r"^at 0x[0-9a-f]+ in (?:(?P<file>[^:]+):(?P<line>\d+)(?::(?P<function>.+))?|(?P<bare>[^:]+(?:::.+)?))$"
)
_FRAME = re.compile(r"^Device Frame: ?(?P<function>.+?)(?:[+:]0x[0-9a-f]+)? in (?P<file>.+):(?P<line>\d+)$")
_THREAD = re.compile(r"^by (?P<who>thread \S+ in block \S+)")
_ADDRESS = re.compile(r"(?:^Access at|^Address) 0x[0-9a-f]+ is (?P<what>.+)")
_NEAREST = re.compile(
    r"^and is (?P<far>[\d,]+ bytes (?:after|before) the nearest allocation).*of size (?P<size>[\d,]+)"
)
_SUMMARY = re.compile(r"SUMMARY: (?P<count>\d+)")


@dataclass
class _Block:
    kind: str
    detail: str
    function: str | None = None
    at: list[tuple[str, int]] = field(default_factory=list)
    other: list[tuple[str, int]] = field(default_factory=list)
    count: int = 1
    extra: list[str] = field(default_factory=list)


def parse(output: str, check: Check, places: Places, kernels: Collection[str]) -> tuple[list[MemoryFinding], int]:
    """Findings in kernels whose names (demangled or mangled) are in `kernels`, and how many were elsewhere."""
    names = frozenset(kernels)
    found: dict[tuple[str, str | None, int | None, str | None, int | None], MemoryFinding] = {}
    elsewhere = 0
    for block in _blocks(output):
        place = _place(block.at, places)
        if place is None and not (block.function and is_own(block.function, names)):
            elsewhere += 1
            continue
        second = _place(block.other, places)
        key = (
            block.kind,
            place.file if place else None,
            place.line if place else None,
            block.function if place is None else None,
            second.line if second else None,
        )
        if key in found:
            found[key] = found[key].model_copy(update={"count": found[key].count + block.count})
            continue
        found[key] = MemoryFinding(
            check=check,
            kind=block.kind,
            detail=", ".join([block.detail, *block.extra])[:300],
            file=place.file if place else None,
            line=place.line if place else None,
            source_line=place.source_line if place else None,
            function=block.function and block.function[:200],
            other_line=second.line if second else None,
            other_source_line=second.source_line if second else None,
            count=block.count,
        )
    return list(found.values()), elsewhere


def unread(output: str) -> str:
    """What is in a report that `parse` makes nothing of: errors of another form, or no end. Empty if there is nothing.

    Failed calls of the CUDA API are passed over: libraries try functions that a driver may lack.
    """
    lines = [line[len(_MARK) :].strip() for line in output.splitlines() if line.startswith(_MARK)]
    if not _SUMMARY.search(output):
        last = next((line for line in reversed(lines) if line and line != "COMPUTE-SANITIZER"), "")
        return f"it came to no summary{f'; its last words: {last}' if last else ''}"
    begins = True
    for line in lines:
        if begins and line and line != "COMPUTE-SANITIZER" and not line.startswith("Program hit"):
            return "" if _SUMMARY.search(line) else f"it tells of something else: {line}"
        begins = not line or line == "COMPUTE-SANITIZER"
    return ""


def _place(at: list[tuple[str, int]], places: Places) -> Place | None:
    """The innermost place in the model's source: what a header's helper does is its caller's."""
    return next((place for file, line in at if (place := places.locate(file, line)) is not None), None)


def _blocks(output: str) -> Iterator[_Block]:
    block: _Block | None = None
    for raw in output.splitlines():
        if not raw.startswith(_MARK):
            continue
        line = raw[len(_MARK) :].strip()
        started = _start(line)
        if started is not None:
            if block:
                yield block
            block = started
        elif block is None:
            continue
        elif not line:
            yield block
            block = None
        else:
            _continue(block, line)
    if block:
        yield block


def _start(line: str) -> _Block | None:
    if match := _INVALID.match(line):
        space = match["space"].strip("_")
        access = "read" if match["access"] == "read" else "write"
        return _Block(f"{space}_{access}", f"{match['access']} of {match['size']} bytes of {space} memory")
    if match := _UNINITIALIZED.match(line):
        space = match["space"].strip("_")
        return _Block("uninitialised_read", f"read of {match['size']} bytes of {space} memory")
    if match := _BARRIER.match(line):
        return _Block("barrier", match["what"].rstrip(".") or "barrier error")
    if match := _RACE.match(line):
        block = _Block("race" if match["severity"].lower() == "error" else "race_warning", match["first"].lower())
        block.function, block.at = _where(match["at"])
        return block
    return None


def _continue(block: _Block, line: str) -> None:
    if match := _SECOND.match(line):
        if not block.other:
            _, block.other = _where(match["at"])
            block.detail += f" and {match['second'].lower()}"
        block.count = int((match["hazards"] or "1").replace(",", ""))
    elif line.startswith("at ") and block.function is None:
        block.function, block.at = _where(line)
    elif match := _FRAME.match(line):
        block.at.append((match["file"], int(match["line"])))
    elif match := _THREAD.match(line):
        block.extra.append(f"by {match['who']}")
    elif match := _ADDRESS.match(line):
        if "misaligned" in match["what"]:
            block.kind = "misaligned"
    elif match := _NEAREST.match(line):
        block.extra.append(f"{match['far']}, of {match['size']} bytes")


def _where(text: str) -> tuple[str | None, list[tuple[str, int]]]:
    match = _OLD_PLACE.match(text) or _NEW_PLACE.match(text)
    if match is None:
        return None, []
    found = match.groupdict()
    function = found["function"] or found.get("bare")
    return function and function.strip(), [(found["file"], int(found["line"]))] if found["line"] else []
