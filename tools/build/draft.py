"""A `load_inline` call while plumbing works on it: parts that can be rewritten, and notes on what was done."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.build.calls import SourcePart
from tools.build.definitions import Block, Function, Scan
from tools.build.scanner import scan
from tools.types import Diagnostic


class PlumbingError(Exception):
    """The call's meaning is not clear, or can't be built. The diagnostics say what to write."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


def fail(code: str, message: str, file: str | None = None) -> PlumbingError:
    """The error for a call that can't be built as it is."""
    return PlumbingError(Diagnostic(severity="error", code=code, message=message, file=file))


@dataclass(slots=True)
class Part:
    """A piece of source. Assigning `text` scans it again when next asked."""

    label: str
    text: str
    line: int = 1
    _scanned: tuple[str, Scan] | None = None

    @property
    def scan(self) -> Scan:
        if self._scanned is None or self._scanned[0] != self.text:
            self._scanned = (self.text, scan(self.text))
        return self._scanned[1]

    @property
    def source(self) -> SourcePart:
        return SourcePart(label=self.label, text=self.text, line=self.line)


@dataclass(slots=True)
class Draft:
    """The two sides of a module, as lists of parts, and what is to be bound."""

    name: str
    cpp: list[Part]
    cuda: list[Part]
    functions: list[tuple[str, str, str | None]] | None
    """Name, documentation and Python name, when that differs."""
    headers: list[Part] = field(default_factory=list)
    """Files that the sources include by name."""
    uses: frozenset[str] = frozenset()
    """Attributes that the candidate's Python code reads, of whatever object."""
    python_module: bool = True
    declarations: list[str] = field(default_factory=list)
    declare_at: int | None = None
    added: list[str] = field(default_factory=list)

    def note(self, text: str) -> None:
        if text not in self.added:
            self.added.append(text)

    @property
    def parts(self) -> list[Part]:
        return [*self.cpp, *self.cuda]

    def blocks(self, parts: list[Part], *macros: str) -> list[tuple[Part, Block]]:
        return [(part, block) for part in parts for block in part.scan.blocks if block.macro in macros]

    def defined(self, name: str, parts: list[Part]) -> list[tuple[Part, Function]]:
        return [(part, function) for part in parts for function in part.scan.defined(name)]

    def declared(self, name: str, parts: list[Part]) -> list[tuple[Part, Function]]:
        return [(part, function) for part in parts for function in part.scan.declared(name)]

    def bindable(self) -> list[tuple[Part, Function]]:
        """Host functions that a binding could name: C++ first, in order of definition."""
        found: list[tuple[Part, Function]] = []
        for part in self.parts:
            for function in part.scan.functions:
                if function.defined and function.host and "operator" not in function.words and function.name != "main":
                    found.append((part, function))
        return found
