"""How numbers are written for the model and on the terminal: few digits, one unit, no false precision."""

from __future__ import annotations

import re
from typing import Protocol

_ESCAPES = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


class _HasBounds(Protocol):
    @property
    def value(self) -> float: ...
    @property
    def low(self) -> float: ...
    @property
    def high(self) -> float: ...


def number(value: float | str, digits: int = 3) -> str:
    """At most `digits` significant digits; 1e-4 style only outside 1e-3 … 1e6. Text (such as 'nan') passes through."""
    if isinstance(value, str):
        return value
    if value == 0 or value != value or value in (float("inf"), float("-inf")):
        return f"{value:g}"
    if 1e-3 <= abs(value) < 1e6:
        decimals = max(0, digits - 1 - _exponent(value))
        text = f"{value:.{decimals}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits - 1}e}"


def _exponent(value: float) -> int:
    return int(f"{abs(value):e}".split("e")[1])


def duration(microseconds: float) -> str:
    """A time in µs, ms or s with three significant digits."""
    if microseconds < 1_000:
        return f"{number(microseconds)} µs"
    if microseconds < 1_000_000:
        return f"{number(microseconds / 1e3)} ms"
    return f"{number(microseconds / 1e6)} s"


def quantity(value: float, unit: str) -> str:
    """With an SI prefix: `4.27e12|quantity('B/s')` is 4.27 TB/s."""
    for factor, prefix in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= factor:
            return f"{number(value / factor)} {prefix}{unit}"
    return f"{number(value)} {unit}"


def size(count: int) -> str:
    """Bytes in KiB, MiB, GiB where they come out even enough to read."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= factor:
            return f"{number(count / factor)} {unit}"
    return f"{count} B"


def fenced(text: str) -> str:
    """A Markdown code block of a program's output, behind a fence that is not in it. Escape sequences of terminals and
    control characters are left out, and a line that was written over by carriage returns is as it was last."""
    text = _ESCAPES.sub("", text).replace("\r\n", "\n")
    text = "\n".join(line.rstrip("\r").rsplit("\r", 1)[-1] for line in text.split("\n"))
    text = _CONTROLS.sub("\ufffd", text)
    longest = max((len(run) for run in re.findall(r"`{3,}", text)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}\n{text}\n{fence}"


def count(number_of: int, what: str) -> str:
    """`1 turn`, `2 turns`."""
    return f"{number_of} {what}{'' if number_of == 1 else 's'}"


def percent(share: float) -> str:
    return f"{number(100 * share)}%"


def speedup(ratio: _HasBounds) -> str:
    """`1.42× (95% interval 1.40 to 1.44)`."""
    return f"{ratio.value:.3g}× (95% interval {ratio.low:.3g} to {ratio.high:.3g})"


def fact(value: object) -> str:
    """One observed value: few digits where it is a float, else as it is."""
    return number(value, 4) if isinstance(value, float) else str(value)


def tidy(text: str) -> str:
    """No trailing blanks, no more than one empty line in a row, none at either end."""
    text = "\n".join(line.rstrip() for line in text.splitlines())
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"
