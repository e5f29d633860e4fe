"""Reads what AddressSanitizer and UndefinedBehaviorSanitizer print, and keeps what lies in the model's own source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from tools.memcheck.records import MemoryFinding
from tools.probe.places import Place, Places

# The library comes in each frame, because every module's source is in a file of the same name.
STACK_FORMAT = "    #%n %p in %f at %s:%l from %m"
_FRAME = re.compile(r"^    #\d+ 0x[0-9a-f]+ in (?P<function>.*) at (?P<file>.*?):(?P<line>\d+) from (?P<library>.*)$")
_ADDRESS = re.compile(r"^==\d+==ERROR: AddressSanitizer: (?P<what>[\w-]+)(?P<more>.*)$")
_ACCESS = re.compile(r"^(?P<access>READ|WRITE) of size (?P<size>\d+)")
_SIGNAL_ACCESS = re.compile(r"caused by a (?P<access>READ|WRITE) memory access")
_WHERE = re.compile(r"is located (?P<where>.+? region)")
_UNDEFINED = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?P<column>\d+): runtime error: (?P<what>.+)$")

_ADDRESS_KINDS = {
    "heap-use-after-free": "use_after_free",
    "stack-use-after-return": "use_after_scope",
    "stack-use-after-scope": "use_after_scope",
    "alloc-dealloc-mismatch": "bad_free",
    "attempting": "bad_free",  # "attempting double-free", "attempting free on address which was not malloc()-ed"
    "SEGV": "invalid_address",
    "FPE": "division_by_zero",
    "stack-overflow": "stack_overflow",
    "negative-size-param": "negative_size",
}
_UNDEFINED_KINDS = (
    ("index .* out of bounds", "index_out_of_bounds"),
    ("integer overflow|negation of", "integer_overflow"),
    ("shift", "bad_shift"),
    ("misaligned", "misaligned"),
    ("division by zero", "division_by_zero"),
    ("null pointer", "null_pointer"),
    ("not a valid value", "invalid_value"),
    ("without returning a value", "no_return_value"),
    ("insufficient space|pointer index expression|pointer overflow", "out_of_bounds_pointer"),
)


@dataclass
class _Report:
    kind: str
    detail: str
    frames: list[tuple[str, str, int, str]] = field(default_factory=list)
    at: tuple[str, int] | None = None
    done: bool = False


def parse(output: str, places: Places) -> tuple[list[MemoryFinding], int]:
    """Findings in the model's source, in the order of their first report, and how many were elsewhere."""
    found: dict[tuple[str, str, int], MemoryFinding] = {}
    elsewhere = 0
    for report in _reports(output.splitlines()):
        place, function = _locate(report, places)
        if place is None:
            elsewhere += 1
            continue
        key = report.kind, place.file, place.line
        if key in found:
            found[key] = found[key].model_copy(update={"count": found[key].count + 1})
            continue
        found[key] = MemoryFinding(
            check="host_sanitizers",
            kind=report.kind,
            detail=report.detail[:300],
            file=place.file,
            line=place.line,
            source_line=place.source_line,
            function=function,
        )
    return list(found.values()), elsewhere


def _reports(lines: Sequence[str]) -> Iterator[_Report]:
    current: _Report | None = None
    for line in lines:
        if match := _ADDRESS.match(line):
            if current:
                yield current
            what = match["what"]
            current = _Report(_ADDRESS_KINDS.get(what, "out_of_bounds" if "overflow" in what else "other"), what)
        elif match := _UNDEFINED.match(line):
            if current:
                yield current
            current = _Report(_undefined_kind(match["what"]), match["what"], at=(match["file"], int(match["line"])))
        elif current is None:
            continue
        elif match := _FRAME.match(line):
            # The first stack is that of the access; the later ones say where the memory came from.
            if not current.done:
                current.frames.append((match["function"], match["file"], int(match["line"]), match["library"]))
        elif match := (_ACCESS.match(line) or _SIGNAL_ACCESS.search(line)):
            write = match["access"] == "WRITE"
            if current.kind == "out_of_bounds":
                current.kind = "out_of_bounds_write" if write else "out_of_bounds_read"
            size = match.groupdict().get("size")
            current.detail += f": {'write' if write else 'read'}" + (f" of {size} bytes" if size else "")
        elif match := _WHERE.search(line):
            current.detail += f", {match['where']}"
            current.done = True
        elif current.frames:
            current.done = True
    if current:
        yield current


def _locate(report: _Report, places: Places) -> tuple[Place | None, str | None]:
    """The innermost frame in the model's source: an access through a header's accessor is the caller's."""
    for function, file, line, library in report.frames:
        place = places.locate(file, line, library)
        if place is not None:
            return place, function.replace("kfast_api::", "")[:200]
    return (places.locate(*report.at) if report.at else None), None


def _undefined_kind(what: str) -> str:
    return next((kind for pattern, kind in _UNDEFINED_KINDS if re.search(pattern, what)), "undefined_behaviour")
