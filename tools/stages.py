"""A candidate's way through build, check and timing: what is known is not run again."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, TypeVar

from tools.candidates import Candidate, Candidates
from tools.reports import KernelReport
from tools.types import BuildResult, CorrectnessResult, TimingResult, Verdict

if TYPE_CHECKING:
    from tools.evaluator import Evaluator

Result = TypeVar("Result")


class JudgeFailed(Exception):  # noqa: N818 - becomes a report to the model
    """The judge broke down twice over one piece of work. The message is for the log."""


class Stages:
    """Takes the `candidates` of one run as far as a tool asks; `on_stage` hears what is done to which."""

    def __init__(self, evaluator: Evaluator, candidates: Candidates, on_stage: Callable[[str, str], None]) -> None:
        self._evaluator = evaluator
        self._candidates = candidates
        self._on_stage = on_stage
        self._judge_failures = 0

    def advance(self, candidate: Candidate, until: Literal["save", "build", "check", "time"]) -> KernelReport:
        """Run the stages up to `until` that the candidate has not been through."""
        ran, judge_failure = False, None
        if until != "save":
            if not _usable(candidate.state.build):
                candidate, ran = self._build(candidate), True
            if until != "build" and candidate.state.build is not None and candidate.state.build.ok:
                try:
                    candidate, judged = self.twice(partial(self._judge, candidate, timed=until == "time"))
                    ran = ran or judged
                except JudgeFailed as failed:
                    ran, judge_failure = True, str(failed)
        best = self._candidates.best
        state = candidate.state
        return KernelReport(
            kernel=candidate.id,
            asked=until,
            edited_from=state.edited_from,
            repeated=until != "save" and not ran,
            leads=best is not None and best.id == candidate.id,
            verdict=Verdict.JUDGE_ERROR if judge_failure is not None else state.verdict,
            build=state.build,
            correctness=state.correctness,
            timing=state.timing,
            judge_failure=judge_failure,
        )

    def _build(self, candidate: Candidate) -> Candidate:
        self._on_stage(candidate.id, "build")
        return self._candidates.update(candidate.id, build=self._evaluator.build(candidate.source, candidate.folder))

    def twice(self, work: Callable[[], Result]) -> Result:
        """Have something judged; where the judge itself breaks down, once more with the new one that takes its place.

        What brings it down twice is set aside, so that it can't end the run. If the next one does too, it is no matter
        of the candidate, and the EvaluatorError passes.
        """
        from tools.evaluator import EvaluatorError

        try:
            try:
                judged = work()
            except EvaluatorError:
                judged = work()
        except EvaluatorError as error:
            self._judge_failures += 1
            if self._judge_failures > 1:
                raise
            raise JudgeFailed(str(error)[-4000:]) from error
        self._judge_failures = 0
        return judged

    def _judge(self, candidate: Candidate, *, timed: bool) -> tuple[Candidate, bool]:
        ran = False
        build = candidate.state.build
        assert build is not None
        if candidate.state.verdict in (None, Verdict.JUDGE_ERROR):
            self._on_stage(candidate.id, "check")
            checked = self._evaluator.check(candidate.source, build)
            candidate, ran = self._candidates.update(candidate.id, correctness=checked), True
        if timed and candidate.state.correct and candidate.state.timing is None:
            self._on_stage(candidate.id, "time")
            timed_or_not = self._evaluator.time(candidate.source, build)
            known = (
                {"timing": timed_or_not}
                if isinstance(timed_or_not, TimingResult)
                # A timed call unmasked it: what the checks before had measured stays beside the new verdict.
                else {"correctness": _with_trials_of(candidate.state.correctness, timed_or_not)}
            )
            candidate, ran = self._candidates.update(candidate.id, **known), True
        return candidate, ran


def _with_trials_of(before: CorrectnessResult | None, after: CorrectnessResult) -> CorrectnessResult:
    return after.model_copy(update={"trials": before.trials, "precision": before.precision}) if before else after


def _usable(build: BuildResult | None) -> bool:
    """False when there is no build, or when one of its libraries is gone since (a cleared cache, another machine)."""
    return build is not None and all(Path(module.library).exists() for module in build.modules)
