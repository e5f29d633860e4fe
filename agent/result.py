"""What a run came to: the content of `result.json`."""

from __future__ import annotations

from pydantic import Field

from tools.types import EvaluationResult, PrecisionClass, Record
from transcripts.messages import Usage


class RunResult(Record):
    """`kernel` is the winner; its numbers are those of the confirmation (fresh processes, fresh seeds, stock build)."""

    problem: str
    model: str
    device: str
    size: str
    reason: str = Field(description="why the run ended, a StopReason")
    solved: bool
    kernel: str | None = None
    speedup: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    time_us: float | None = None
    precision: PrecisionClass | None = None
    best_baseline: str | None = None
    speedup_over_best: float | None = None
    speedup_over_best_low: float | None = None
    speedup_over_best_high: float | None = None
    solution: str | None = Field(default=None, description="relative to the run folder")
    confirmation: EvaluationResult | None = None
    not_confirmed: list[str] = Field(default_factory=list, description="candidates that were faster and failed it")
    candidates: int = 0
    correct: int = 0
    turns: int = 0
    seconds: float = 0.0
    usage: Usage = Usage()
    cost_usd: float | None = None

    @property
    def baselines(self) -> tuple[str, ...]:
        """What the winner was compared with, such as eager and compile."""
        timing = self.confirmation.timing if self.confirmation else None
        return tuple(timing.baselines_us) if timing else ()
