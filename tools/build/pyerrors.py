"""A Python exception that a candidate raised, as a `Diagnostic` located in the candidate's own file."""

from __future__ import annotations

import traceback
from typing import Any

from tools.build.pretence import NoDeviceHere

_CODES: list[tuple[type[BaseException], str]] = [
    (NoDeviceHere, "python_uses_gpu"),
    (SyntaxError, "python_syntax"),
    (ModuleNotFoundError, "python_missing_module"),
    (ImportError, "python_import"),
    (NameError, "python_name"),
    (AttributeError, "python_attribute"),
    (TypeError, "python_arguments"),
    (SystemExit, "python_exit"),
    (MemoryError, "python_memory"),
    (RecursionError, "python_recursion"),
]


def python_error(raised: BaseException, source: str, filename: str) -> dict[str, Any]:
    """The fields of a `Diagnostic` (JSON) for `raised`: the last line of the candidate's own that led to it."""
    lines = source.splitlines()
    line: int | None = None
    column: int | None = None
    if isinstance(raised, SyntaxError) and raised.filename == filename:
        line, column = raised.lineno, raised.offset
        message = f"{type(raised).__name__}: {raised.msg}"
    else:
        for frame in traceback.extract_tb(raised.__traceback__):
            if frame.filename == filename:
                line = frame.lineno
        message = f"{type(raised).__name__}: {raised}" if str(raised) else type(raised).__name__
    if isinstance(raised, SystemExit):
        message = f"the file ends the process ({message}) before its model is built"
    return {
        "severity": "error",
        "code": next((code for kind, code in _CODES if isinstance(raised, kind)), "python_error"),
        "message": message[:2000],
        "file": filename,
        "line": line,
        "column": column,
        "source_line": lines[line - 1].strip()[:500] if line and 0 < line <= len(lines) else None,
    }
