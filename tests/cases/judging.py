"""Judged candidates: files with the verdict that each must get, and the loop that holds the judge against them.

A manifest is a JSON list of rows: `file` and `problem` (paths below the manifest's folder; `candidates/` and
`problems/` may be left out), `device`, `kind` (honest, broken, hack), `mechanism`, `expected`, `accept` (other verdicts
that are also right), `why`, `most_speedup` (more than that may not be reported: for tricks that lie about time by a
factor of a thousand). A row with `timed` false is built and checked but not timed.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from problems import ProblemSpec
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import EvaluationResult, Finding

HERE = Path(__file__).parent


class Case(BaseModel):
    """One row of a manifest."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    file: str
    problem: str
    device: str
    kind: str
    mechanism: str
    expected: str
    accept: list[str] = Field(default_factory=list)
    why: str = ""
    timed: bool = True
    most_speedup: float | None = None

    @property
    def accepted(self) -> set[str]:
        # The build adds the declarations that load_inline lacks, so such a candidate is simply correct.
        return {self.expected.removesuffix("_if_declarations_added"), *self.accept}

    @property
    def name(self) -> str:
        return Path(self.file).stem


class Judged(BaseModel):
    """What became of a case."""

    case: Case
    verdict: str
    findings: list[Finding]
    speedup: float | None
    seconds: float

    @property
    def right(self) -> bool:
        most = self.case.most_speedup
        return self.verdict in self.case.accepted and (most is None or self.speedup is None or self.speedup <= most)


def load_cases(folder: Path, device: str | None = None) -> list[Case]:
    """The rows of a folder's manifest.json, by problem."""
    cases = [Case.model_validate(row) for row in json.loads((folder / "manifest.json").read_text())]
    return sorted((c for c in cases if device in (None, c.device)), key=lambda c: (c.device, c.problem, c.file))


def find_file(folder: Path, name: str, below: str) -> Path:
    """The file of that name in the manifest's folder or in its folder `below`."""
    return folder / name if (folder / name).is_file() else folder / below / name


class CaseEvaluator(Evaluator):
    """An evaluator that goes from problem to problem: what it builds with is started once."""

    def turn_to(self, spec: ProblemSpec) -> None:
        """Judge candidates of `spec` from here on."""
        if spec != self.spec:
            self._end_judge()
            self.spec = spec


def problem_of(folder: Path, case: Case) -> ProblemSpec:
    """The case's problem, at its full size, which is a small one."""
    path = find_file(folder, case.problem, "problems")
    return ProblemSpec(name=path.stem, source=path.read_text(), origin="path", path=path)


def open_evaluator(folder: Path, case: Case, cache_dir: Path | None = None) -> CaseEvaluator:
    """An evaluator, turned to the case's problem. `cache_dir` keeps builds; None is the user's own cache."""
    cache = {} if cache_dir is None else {"cache_dir": cache_dir}
    return CaseEvaluator(problem_of(folder, case), EvaluatorSettings.model_validate({"device": case.device, **cache}))


def judge(evaluator: Evaluator, folder: Path, case: Case, log_dir: Path) -> Judged:
    """Build, check and (unless the row says otherwise) time one case."""
    source = find_file(folder, case.file, "candidates").read_text()
    began = time.monotonic()
    if case.timed:
        return _judged(case, evaluator.evaluate(source, log_dir), began)
    build = evaluator.build(source, log_dir)
    if build.verdict is not None:
        return _judged(case, EvaluationResult(verdict=build.verdict, build=build, seconds=0.0), began)
    checked = evaluator.check(source, build)
    result = EvaluationResult(verdict=checked.verdict, build=build, correctness=checked, seconds=0.0)
    return _judged(case, result, began)


def judge_all(folder: Path, cases: list[Case], cache_dir: Path | None = None) -> Iterator[Judged]:
    """Every case, one evaluator a device."""
    for _, rows in groupby(cases, key=lambda c: c.device):
        group = list(rows)
        with open_evaluator(folder, group[0], cache_dir) as evaluator, tempfile.TemporaryDirectory() as logs:
            for i, case in enumerate(group):
                evaluator.turn_to(problem_of(folder, case))
                yield judge(evaluator, folder, case, Path(logs) / str(i))


def _judged(case: Case, result: EvaluationResult, began: float) -> Judged:
    findings = [*result.build.findings, *(result.correctness.findings if result.correctness else [])]
    return Judged(
        case=case,
        verdict=result.verdict.value,
        findings=findings,
        speedup=result.timing.speedup.value if result.timing else None,
        seconds=time.monotonic() - began,
    )
