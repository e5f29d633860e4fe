"""How candidates are judged and where builds are kept: what a caller of the evaluator decides. Free of torch."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from tools.types import PrecisionClass


class EvaluatorError(Exception):
    """Evaluating is impossible here, through no fault of the candidate. The message says what to do."""


class EvaluatorSettings(BaseModel):
    """How candidates are judged. `rule` `kernelbench` is the plain allclose at 1e-4 against the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["cuda", "cpu"]
    size: str = "full"
    sandbox: Literal["auto", "strict"] = "auto"
    rule: Literal["oracle", "kernelbench"] = "oracle"
    precision: PrecisionClass | None = None
    require_own_kernels: float | None = Field(default=None, ge=0, le=1)
    repair_inputs: bool = Field(default=False, description="others where the problem's own mean nothing")
    cache_dir: Path = Field(default_factory=lambda: default_cache_dir())
    compile_baselines: bool = False
    autotune_baseline: bool = Field(default=False, description="torch.compile with max-autotune too; takes minutes")
    hidden: tuple[Path, ...] = Field(default=(), description="folders that no candidate may see, such as other runs")


def default_cache_dir() -> Path:
    """Where builds and measured rates are kept across runs: KERNEL_AGENT_CACHE, else the user's cache folder."""
    named = os.environ.get("KERNEL_AGENT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "kernel-agent"
