"""A limit on how long the problem's own Python code may take in the judge."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Generator
from types import FrameType

from problems import ProblemError


@contextlib.contextmanager
def deadline(seconds: float, message: str) -> Generator[None]:
    """Raise ProblemError with `message` when the block takes longer than `seconds`.

    Works between two steps of Python: a single call into C that takes for ever is noticed when it ends. Does nothing
    outside of the main thread, where Python handles no signals. A timer that was set before goes on behind it.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def ring(number: int, frame: FrameType | None) -> None:
        raise ProblemError(message)

    began = time.monotonic()
    handler = signal.signal(signal.SIGALRM, ring)
    before, _ = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if before:
            signal.setitimer(signal.ITIMER_REAL, max(before - (time.monotonic() - began), 1e-3))
