"""The resolved configuration of a run: what makes two runs the same command."""

from __future__ import annotations

import hashlib
from typing import Literal

from pydantic import BaseModel, ConfigDict

from problems import ProblemSpec
from tools.evaluator import EvaluatorSettings
from tools.types import PrecisionClass


class RunConfig(BaseModel):
    """Stored in `run.json`. Budgets are not part of it: a run goes on with a larger budget than it began with."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str
    problem_sha256: str
    model: str
    device: Literal["cuda", "cpu"]
    size: str
    sandbox: Literal["auto", "strict"] = "auto"
    rule: Literal["oracle", "kernelbench"] = "oracle"
    precision: PrecisionClass | None = None
    require_own_kernels: float | None = None
    repair_inputs: bool = False

    @classmethod
    def resolve(cls, spec: ProblemSpec, model: str, settings: EvaluatorSettings) -> RunConfig:
        return cls(
            problem=spec.name,
            problem_sha256=hashlib.sha256(spec.source.encode()).hexdigest(),
            model=model,
            device=settings.device,
            size=settings.size,
            sandbox=settings.sandbox,
            rule=settings.rule,
            precision=settings.precision,
            require_own_kernels=settings.require_own_kernels,
            repair_inputs=settings.repair_inputs,
        )
