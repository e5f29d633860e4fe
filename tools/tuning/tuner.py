"""From a source and the points to try to a table of variants, and the best of them through the full check."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tools.reports import KernelReport, Refusal, TuneReport
from tools.tuning.constraints import Constraint, ConstraintError
from tools.tuning.parameters import Point, Value, current, places, variant
from tools.tuning.records import SweepRow, TuneRow
from tools.tuning.space import Expansion, expand
from tools.types import BuildResult, Verdict

if TYPE_CHECKING:
    from tools.evaluator import Evaluator

MOST_CONFIRMED = 3
"""How many of the fastest variants may fail the full check before the tool gives up."""


_Reason = Literal["parameter_not_defined", "bad_constraint", "nothing_allowed"]


class CannotTune(Exception):  # noqa: N818 - an answer to the model, not an error
    """There is nothing to try. `given` is a parameter's name, `problems` are constraints."""

    def __init__(
        self,
        code: _Reason,
        *,
        given: str | None = None,
        problems: Sequence[str] = (),
    ) -> None:
        super().__init__(code)
        self.code: _Reason = code
        self.given = given
        self.problems = list(problems)

    def refusal(self, kernel: str) -> Refusal:
        """The answer, which names the id under which the source is kept."""
        return Refusal(tool="tune_kernel", code=self.code, given=self.given, problems=self.problems, known=[kernel])


@dataclass(frozen=True)
class Variant:
    """One source of a sweep with what became of it."""

    source: str
    row: TuneRow


@dataclass(frozen=True)
class Swept:
    """All variants, the best first, and the seconds that building and sweeping took. None where the judge failed."""

    variants: list[Variant] = field(default_factory=list)
    build_seconds: float = 0.0
    sweep_seconds: float = 0.0
    judge_failure: str | None = None


@dataclass(frozen=True)
class Plan:
    """What is tried: each source with its values, `source` as it was sent first; and the lines of each parameter."""

    source: str
    sources: dict[str, Point]
    lines: dict[str, list[int]]
    expansion: Expansion

    def report(self, kernel: str, swept: Swept, best: KernelReport | None) -> TuneReport:
        """What came of it for the source with the id `kernel`."""
        return TuneReport(
            kernel=kernel,
            lines=self.lines,
            combinations=self.expansion.combinations,
            looked_at=self.expansion.looked_at,
            allowed=self.expansion.allowed,
            variants=[variant.row for variant in swept.variants],
            best=best,
            build_seconds=swept.build_seconds,
            sweep_seconds=swept.sweep_seconds,
            judge_failure=swept.judge_failure,
        )


def planned(source: str, space: dict[str, list[Value]], constraints: Sequence[str], limit: int) -> Plan:
    """At most `limit` points of `space` for `source`. Raises CannotTune."""
    lines = {name: places(source, name) for name in space}
    for name in space:
        if not lines[name]:
            raise CannotTune("parameter_not_defined", given=name)
    try:
        expansion = expand(space, [Constraint(text, space) for text in constraints], limit)
    except ConstraintError as error:
        raise CannotTune("bad_constraint", problems=[str(error)]) from None
    if not expansion.points:
        raise CannotTune("nothing_allowed", problems=constraints)
    sources: dict[str, Point] = {source: {name: current(source, name) for name in space}}
    for point in expansion.points:
        sources[variant(source, point)] = point
    return Plan(source, sources, lines, expansion)


def sweep(evaluator: Evaluator, plan: Plan, folder: Path, stage: Callable[[str], None] = lambda _: None) -> Swept:
    """Build and sweep what is planned. Logs of the builds go below `folder`.

    `stage` hears `build` and `sweep`. Raises EvaluatorError.
    """
    sources = list(plan.sources)
    stage("build")
    began = time.monotonic()
    builds = evaluator.build_all([(text, folder / f"{n:02d}") for n, text in enumerate(sources)])
    built = time.monotonic()
    stage("sweep")
    good = [(text, build) for text, build in zip(sources, builds, strict=True) if build.ok]
    timed = iter(evaluator.sweep(good) if good else [])
    variants = [
        Variant(text, _row(plan.sources[text], text == plan.source, build, next(timed) if build.ok else None))
        for text, build in zip(sources, builds, strict=True)
    ]
    variants.sort(key=lambda v: (-v.row.built, -v.row.rungs, -(v.row.speedup.value if v.row.speedup else 0.0)))
    return Swept(variants, built - began, time.monotonic() - built)


def confirmed(swept: Swept, judge: Callable[[str], KernelReport]) -> tuple[Swept, KernelReport | None]:
    """Have the fastest variants judged in full, one after another, until one is correct.

    Returns the table with what was found, and the report on the correct one, if there is any among the first few.
    """
    variants = list(swept.variants)
    best: KernelReport | None = None
    for place, candidate in enumerate(variants[:MOST_CONFIRMED]):
        if candidate.row.speedup is None:
            break
        report = judge(candidate.source)
        row = candidate.row.model_copy(update={"kernel": report.kernel, "verdict": report.verdict})
        variants[place] = replace(candidate, row=row)
        if report.verdict is Verdict.CORRECT:
            best = report
            break
    return replace(swept, variants=variants), best


def _row(values: Point, as_sent: bool, build: BuildResult, swept: SweepRow | None) -> TuneRow:
    if swept is None:
        return TuneRow(
            values=dict(values), as_sent=as_sent, built=False, verdict=build.verdict, problem=_why_not_built(build)
        )
    return TuneRow(
        values=dict(values),
        as_sent=as_sent,
        built=True,
        problem=swept.finding.summary if swept.finding else None,
        verdict=swept.verdict,
        candidate_us=swept.candidate_us,
        speedup=swept.speedup,
        samples=swept.samples,
        rungs=swept.rungs,
    )


def _why_not_built(build: BuildResult) -> str | None:
    errors = [d for d in build.diagnostics if d.severity == "error"]
    return errors[0].message if errors else build.findings[0].summary if build.findings else None
