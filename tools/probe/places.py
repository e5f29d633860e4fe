"""From a line in a file that we compiled back to the line that the model wrote."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from tools.build.calls import BuildCall
from tools.build.render import Rendered, render
from tools.types import BuildResult


@dataclass(frozen=True)
class Place:
    """A line of the model's own text: `file` is its label, such as `cuda_sources`."""

    file: str
    line: int
    source_line: str | None


class Places:
    """The files behind the libraries of one build, found in the build cache."""

    def __init__(self, build: BuildResult) -> None:
        self._units: list[tuple[str, Rendered]] = []
        self._headers: list[tuple[str, str, list[str]]] = []
        for module in build.modules:
            try:
                text = (Path(module.library).parent / "call.json").read_text(encoding="utf-8")
                call = BuildCall.model_validate_json(text)
            except (OSError, ValueError):
                continue
            self._units += [(module.library, render(call, unit)) for unit in call.units]
            self._headers += [(module.library, h.label, h.text.split("\n")) for h in call.headers]

    def locate(self, file: str, line: int, library: str | None = None) -> Place | None:
        """The model's line behind `line` of `file`, as the compiler named it; None where it is not the model's.

        Every module has a file of the same name, so `library` tells which one is meant; without it the first counts.
        """
        name = PurePosixPath(file).name
        for owner, unit in self._units:
            if unit.filename == name and library in (None, owner):
                found = unit.locate(line)
                return Place(found[0], found[1], unit.source_line(line)) if found else None
        for owner, label, lines in self._headers:
            if PurePosixPath(label).name == name and library in (None, owner) and 0 < line <= len(lines):
                return Place(label, line, lines[line - 1].strip())
        return None
