"""Ctrl-C: once to end in order after the call in flight, twice to stop at once."""

from __future__ import annotations

import signal
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Self

from agent.stops import Stop, StopReason


class Interrupts:
    """While it is entered, the first SIGINT is only noted and `on_first` is called; the second is KeyboardInterrupt.

    Where nothing is in flight that would be lost (setting up, waiting for a person's reply), `immediately` makes the
    first one raise `Stop` on the spot.
    """

    def __init__(self, on_first: Callable[[], None]) -> None:
        self.asked = False
        self.immediately = False
        self._on_first = on_first
        self._previous: object = None

    def check(self) -> None:
        """Raises `Stop` if Ctrl-C was pressed."""
        if self.asked:
            raise Stop(StopReason.INTERRUPTED)

    def __enter__(self) -> Self:
        self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.signal(signal.SIGINT, self._previous)  # pyright: ignore[reportArgumentType]

    def _handle(self, _number: int, _frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self._on_first()
        if self.immediately:
            raise Stop(StopReason.INTERRUPTED)
