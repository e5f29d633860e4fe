"""What a candidate raised, as data."""

from __future__ import annotations

import contextlib
import traceback
from typing import Any

from tools.worker.loader import CANDIDATE_FILE, LoadFailure
from tools.worker.trees import TreeError


def describe(error: BaseException) -> dict[str, Any]:
    """An exception as data: its type, its message, and where in the candidate's own source it came from."""
    frames = [f for f in traceback.extract_tb(error.__traceback__) if f.filename == CANDIDATE_FILE]
    line = frames[-1].lineno if frames else None
    if isinstance(error, SyntaxError) and error.filename == CANDIDATE_FILE:
        line = error.lineno
    text = ""
    with contextlib.suppress(Exception):
        text = str(error)[:2000]
    kind = "load" if isinstance(error, LoadFailure) else "tree" if isinstance(error, TreeError) else "python"
    source_line = frames[-1].line if frames else None
    return {"kind": kind, "type": type(error).__name__, "message": text, "line": line, "source_line": source_line}
