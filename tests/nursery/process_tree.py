"""Looking at processes from outside, for tests that count what is left of them."""

from __future__ import annotations

import time
from pathlib import Path

Process = tuple[int, str]


def descendants(root: int) -> set[Process]:
    """Everything below a process, each as its pid and the time it began (a pid alone may be another's tomorrow)."""
    parents: dict[int, list[Process]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and (found := _stat(int(entry.name))):
            parent, began = found
            parents.setdefault(parent, []).append((int(entry.name), began))
    below, waiting = set[Process](), [root]
    while waiting:
        children = parents.get(waiting.pop(), [])
        below.update(children)
        waiting += [pid for pid, _ in children]
    return below


def left_of(processes: set[Process], seconds: float = 60) -> set[Process]:
    """Those that are still there once they have had time to die."""
    deadline = time.monotonic() + seconds
    while True:
        left = {(pid, began) for pid, began in processes if (found := _stat(pid)) and found[1] == began}
        if not left or time.monotonic() > deadline:
            return left
        time.sleep(0.02)


def _stat(pid: int) -> tuple[int, str] | None:
    """Parent and time of beginning; None for one that is gone or only waits to be reaped."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    fields = text[text.rindex(")") + 2 :].split()
    return None if fields[0] in "ZX" else (int(fields[1]), fields[19])
