"""Addresses in a candidate's own libraries back to lines of the model's source, by binutils' addr2line."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from tools.probe.host import Host
from tools.probe.places import Place, Places
from tools.profiling.records import LineShare
from tools.sandbox import SandboxError
from tools.types import BuildResult

LOOKUP_SECONDS = 20.0
MOST_LINES = 6
LEAST_SHARE = 0.02
_LOCATION = re.compile(r"^(?P<file>.+):(?P<line>\d+)(?: \(discriminator \d+\))?$")


def hot_lines(
    host: Host, build: BuildResult, addresses: Sequence[tuple[str, int, int]], samples: int, folder: Path
) -> list[LineShare]:
    """Lines with a share of the `samples`, the largest first. `addresses` are library, address and samples.

    Empty where there is no addr2line, or the libraries have no line information.
    """
    program = shutil.which("addr2line")
    libraries = [m.library for m in build.modules]
    if program is None or not samples:
        return []
    places, found = Places(build), Counter[Place]()
    folder.mkdir(parents=True, exist_ok=True)
    for library in libraries:
        rows = [(address, count) for path, address, count in addresses if path == library]
        if not rows:
            continue
        argv = [program, "-i", "-a", "-e", library, *(hex(address) for address, _ in rows)]
        try:
            done = host.execute(argv, folder, LOOKUP_SECONDS, readable=[Path(library).parent])
        except (SandboxError, OSError):
            return []
        located = parse(done.stdout.decode("utf-8", "replace"))
        for address, count in rows:
            place = next((p for f, n in located.get(address, []) if (p := places.locate(f, n, library))), None)
            if place is not None:
                found[place] += count
    return [
        LineShare(file=place.file, line=place.line, source_line=place.source_line, share=count / samples)
        for place, count in found.most_common(MOST_LINES)
        if count >= LEAST_SHARE * samples
    ]


def parse(output: str) -> dict[int, list[tuple[str, int]]]:
    """What addr2line printed: for each address its places, the innermost of what was inlined first."""
    found: dict[int, list[tuple[str, int]]] = {}
    current: list[tuple[str, int]] = []
    for line in output.splitlines():
        if line.startswith("0x"):
            current = found.setdefault(int(line, 16), [])
        elif match := _LOCATION.match(line):
            current.append((match["file"], int(match["line"])))
    return found
