"""Syntax trees of Python sources, for builds that run in several threads."""

from __future__ import annotations

import ast
import threading

_ONE = threading.Lock()


def parse(source: str) -> ast.Module:
    """`ast.parse`, by one thread at a time: in CPython 3.11 threads that are in it together count the depth
    of each other's trees, and one of them fails with a SystemError. Raises what `ast.parse` raises."""
    with _ONE:
        return ast.parse(source)
