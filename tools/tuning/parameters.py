"""Where a source defines a parameter, and the source with other values there."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass

Value = bool | int | float | str
"""In Python a text is written as a string, in C++ as it stands: it may name a type there."""

Point = Mapping[str, Value]

# {name} is put in. The group `value` is what is replaced; what surrounds it stays.
_CPP = (
    r"^[ \t]*#[ \t]*define[ \t]+{name}[ \t]+(?P<value>[^\s/](?:[^\n/\\]|/(?![/*]))*?)[ \t]*(?=$|//|/\*)",
    r"\bconst(?:expr)?\b[^;{{}}()\n]*?\b{name}[ \t]*=[ \t]*(?P<value>[-+]?[\w.:]+)[ \t]*(?=[;,])",
    r"\bconst(?:expr)?\b[^;{{}}()=\n]*?\b{name}[ \t]*\{{[ \t]*(?P<value>[-+]?[\w.:]+)[ \t]*\}}",
    r"\benum\b[^;{{}}()]*\{{[^{{}}]*?\b{name}[ \t]*=[ \t]*(?P<value>[-+]?[\w.:]+)[ \t]*(?=[,}}\n])",
    r"\busing[ \t]+{name}[ \t]*=[ \t]*(?P<value>[\w:]+(?:[ \t]+\w+)*)[ \t]*(?=;)",
    r"\btemplate[ \t]*<[^;{{}}>]*?\b{name}[ \t]*=[ \t]*(?P<value>[-+]?[\w.:]+)[ \t]*(?=[,>])",
    r"(?<![\w-])-D{name}=(?P<value>[-+\w.:]+)",
)
_COMMENTS = re.compile(r"/\*.*?\*/|//[^\n]*", re.DOTALL)


@dataclass(frozen=True)
class _Definition:
    """`start` and `end` are the literal's place in the source."""

    start: int
    end: int
    python: bool


def places(source: str, name: str) -> list[int]:
    """The lines, from 1, on which `source` defines the parameter `name`; none where it does not."""
    return sorted({source.count("\n", 0, d.start) + 1 for d in _definitions(source, name)})


def current(source: str, name: str) -> str:
    """The value that `source` gives `name` now, as it is written there. The first, where there are several."""
    first = min(_definitions(source, name), key=lambda d: d.start)
    return source[first.start : first.end]


def variant(source: str, point: Point) -> str:
    """`source` with each parameter's value in all places that define it. What it does not define stays out."""
    written: list[tuple[int, int, str]] = []
    for name, value in point.items():
        for d in _definitions(source, name):
            now = source[d.start : d.end]
            written.append((d.start, d.end, _in_python_as(value, now) if d.python else _in_cpp(value)))
    # From the end, so that the places before stay where they are.
    for start, end, text in sorted(written, reverse=True):
        source = source[:start] + text + source[end:]
    return source


def _in_cpp(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _in_python_as(value: Value, now: str) -> str:
    """The literal; the one that is there `now` where it means the same, so that the source itself is recognised."""
    there = ast.literal_eval(now)
    return now if type(there) is type(value) and there == value else repr(value)


def _definitions(source: str, name: str) -> list[_Definition]:
    if not re.fullmatch(r"[A-Za-z_]\w*", name):
        return []
    # Blank, so that places stay; of flags in Python, where `//` is no comment, too little is lost to tell them apart.
    bare = _COMMENTS.sub(lambda comment: re.sub(r"[^\n]", " ", comment.group()), source)
    found = {
        match.span("value"): _Definition(*match.span("value"), python=False)
        for form in _CPP
        for match in re.finditer(form.format(name=name), bare, re.MULTILINE)
    }
    return [*found.values(), *_in_python(source, name)]


def _in_python(source: str, name: str) -> list[_Definition]:
    """Assignments of a plain number, text or truth value at the top level of the file."""
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError, RecursionError):
        return []  # building it will say so
    found: list[_Definition] = []
    for statement in body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value) if target == name:
                pass
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.expr() as value) if target == name:
                pass
            case _:
                continue
        plain = value.operand if isinstance(value, ast.UnaryOp) and isinstance(value.op, ast.USub) else value
        if isinstance(plain, ast.Constant) and isinstance(plain.value, bool | int | float | str):
            found.append(_Definition(*_span(source, value), python=True))
    return found


def _span(source: str, node: ast.expr) -> tuple[int, int]:
    """A node's place in characters; `ast` counts columns in UTF-8 bytes."""
    assert node.end_lineno is not None and node.end_col_offset is not None
    lines = source.splitlines(keepends=True)

    def at(line: int, column: int) -> int:
        return sum(map(len, lines[: line - 1])) + len(lines[line - 1].encode()[:column].decode())

    return at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
