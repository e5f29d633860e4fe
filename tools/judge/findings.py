"""Making findings: a code, one sentence, and the facts behind it."""

from __future__ import annotations

from typing import Literal

from tools.types import Finding

Fact = str | int | float | bool | list[int] | list[str] | None


def observe(
    code: str, summary: str, severity: Literal["error", "warning", "note"] = "error", **observed: Fact
) -> Finding:
    """A finding with `observed` as its facts."""
    return Finding(code=code, severity=severity, summary=summary, observed=dict(observed))
