"""What the user asked of a verdict, what a check found, and how a step of it ends it."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.judge.compare import Comparison
from tools.types import Finding, PrecisionClass, TrialResult, Verdict


@dataclass(frozen=True)
class Rules:
    """What the user asked of the verdict."""

    demanded: PrecisionClass | None = None
    allclose: tuple[float, float] | None = None
    require_own_kernels: float | None = None


@dataclass
class Outcome:
    """What a check found. `verdict` is None while nothing has failed."""

    verdict: Verdict | None = None
    trials: list[TrialResult] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    weights: str | None = None
    own_share: float | None = None
    own: list[Comparison] = field(default_factory=list)


class Failed(Exception):  # noqa: N818
    """A check that decides the verdict."""

    def __init__(self, verdict: Verdict, *findings: Finding) -> None:
        super().__init__(verdict)
        self.verdict = verdict
        self.findings = list(findings)
