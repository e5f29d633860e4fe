"""The end of a run: judge what never was, confirm the winner, write the result."""

from __future__ import annotations

from agent.result import RunResult
from agent.run import Run, as_json
from agent.stops import StopReason
from tools.candidates import Candidate
from tools.evaluator import EvaluatorError
from tools.types import EvaluationResult, Verdict
from transcripts.events import Confirmed, RunFinished


def finish(run: Run, reason: StopReason) -> RunResult:
    """Write `solution.py` and `result.json` from the fastest candidate that stands the confirmation."""
    if reason is not StopReason.INTERRUPTED:
        judge_the_rest(run)
    winner, solution, confirmation, failed = confirm(run)
    result = _result(run, reason, winner, confirmation, failed)
    if winner is not None:
        run.folder.write_solution(solution)
    else:
        (run.folder.path / "solution.py").unlink(missing_ok=True)
    record = as_json(result)
    run.folder.write_result(record)
    run.log(RunFinished(reason=reason.value, result=record))
    return result


def judge_the_rest(run: Run) -> None:
    """A candidate that compiled and was never judged may be the best one: the budget ended, not its chance."""
    for candidate in run.toolbox.candidates.unjudged():
        if run.interrupts.asked:
            return
        run.progress.judging(candidate.id)
        run.note_candidates(run.toolbox.judge(candidate))


def confirm(run: Run) -> tuple[Candidate | None, str, EvaluationResult | None, list[str]]:
    """The fastest candidate that is correct again in fresh processes, with fresh seeds and a stock build.

    What is confirmed, and returned beside it, is the very text that the user gets: one that builds without us.
    """
    failed = [c.id for c in run.toolbox.candidates if c.state.confirmed is False]
    for candidate in run.toolbox.candidates.ranking():
        run.progress.confirming(candidate.id)
        solution = run.evaluator.standalone(candidate.source)
        record = run.evaluator.confirm(solution, candidate.folder / "confirm")
        if record.verdict is Verdict.JUDGE_ERROR:
            raise EvaluatorError(f"{candidate.id} could not be confirmed: the judge itself failed.")
        confirmed = record.verdict is Verdict.CORRECT
        run.toolbox.candidates.update(candidate.id, confirmed=confirmed)
        run.log(Confirmed(id=candidate.id, confirmed=confirmed, record=as_json(record)))
        run.progress.confirmed(candidate.id, record)
        if confirmed:
            return candidate, solution, record, failed
        failed.append(candidate.id)
    return None, "", None, failed


def _result(
    run: Run, reason: StopReason, winner: Candidate | None, confirmation: EvaluationResult | None, failed: list[str]
) -> RunResult:
    timing = confirmation.timing if confirmation else None
    precision = confirmation.correctness.precision if confirmation and confirmation.correctness else None
    return RunResult(
        problem=run.config.problem,
        model=run.config.model,
        device=run.facts.device.name,
        size=run.config.size,
        reason=reason.value,
        solved=winner is not None,
        kernel=winner.id if winner else None,
        speedup=timing.speedup.value if timing else None,
        speedup_low=timing.speedup.low if timing else None,
        speedup_high=timing.speedup.high if timing else None,
        time_us=timing.candidate_us.value if timing else None,
        precision=precision.measured if precision else None,
        best_baseline=timing.best_baseline if timing else None,
        speedup_over_best=timing.speedup_over_best if timing else None,
        speedup_over_best_low=timing.speedup_over_best_low if timing else None,
        speedup_over_best_high=timing.speedup_over_best_high if timing else None,
        solution="solution.py" if winner else None,
        confirmation=confirmation,
        not_confirmed=failed,
        candidates=len(run.toolbox.candidates),
        correct=sum(c.state.correct for c in run.toolbox.candidates),
        turns=run.budget.turns,
        seconds=round(run.budget.seconds, 3),
        usage=run.usage,
        cost_usd=run.budget.cost,
    )
