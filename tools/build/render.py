"""Writes the translation units of a `BuildCall` as torch's `load_inline` would, and finds the way back.

Apart from what plumbing added the text is the one that torch writes, line by line. So messages are located by a table
of lines instead of `#line` directives.
"""

from __future__ import annotations

from dataclasses import dataclass

from tools.build.calls import BuildCall, Unit


@dataclass(frozen=True, slots=True)
class Rendered:
    """Text of a file to compile; `origin[i]` is where its line i + 1 comes from: label and line, None if ours."""

    filename: str
    text: str
    origin: list[tuple[str, int] | None]

    def locate(self, line: int) -> tuple[str, int] | None:
        """Label and line in the model's own source, None for a line of ours."""
        return self.origin[line - 1] if 0 < line <= len(self.origin) else None

    def source_line(self, line: int) -> str | None:
        """The text of a line, without surrounding space."""
        lines = self.text.split("\n")
        return lines[line - 1].strip() if 0 < line <= len(lines) else None


def render(call: BuildCall, unit: Unit) -> Rendered:
    """The file that the compiler sees for `unit`; the first C++ unit carries the bindings."""
    lines: list[str] = []
    origin: list[tuple[str, int] | None] = []

    def ours(text: str) -> None:
        for line in text.split("\n"):
            lines.append(line)
            origin.append(None)

    for include in unit.implicit:
        ours(f"#include <{include}>")
    for index, part in enumerate(unit.parts):
        if index == unit.declare_at:
            for declaration in unit.declarations:
                ours(declaration)
        for offset, line in enumerate(part.text.split("\n")):
            lines.append(line)
            origin.append((part.label, part.line + offset))
    if unit.declare_at >= len(unit.parts):
        for declaration in unit.declarations:
            ours(declaration)
    if call.bindings is not None and call.cpp_units and unit is call.cpp_units[0]:
        ours(binding_text(call))
    return Rendered(unit.filename, "\n".join(lines), origin)


def binding_text(call: BuildCall) -> str:
    """The `PYBIND11_MODULE` that torch generates for `functions=`."""
    lines = ["PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {"]
    for function in call.bindings or []:
        target = f"torch::wrap_pybind_function({function.name})" if call.error_handling else function.name
        lines.append(f'm.def("{function.exported}", {target}, "{_escaped(function.doc)}");')
    return "\n".join([*lines, "}"])


def _escaped(doc: str) -> str:
    return doc.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\r", "")
