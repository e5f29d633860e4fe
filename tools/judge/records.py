"""What the judge measured as the records that leave it: the accuracy of a check, the result of a timing."""

from __future__ import annotations

from typing import Literal

import numpy as np

from tools.device.floor import Floor
from tools.judge import statistics
from tools.judge.baselines import Baseline
from tools.judge.bench import Bench
from tools.judge.check import Outcome, Rules
from tools.judge.clocks import launch_bound, slower_in_a_row
from tools.judge.duel import Measured
from tools.judge.findings import observe
from tools.judge.inputs import OWN
from tools.judge.limits import Limit, classify, floor_limit
from tools.judge.timing import METHOD
from tools.types import Evidence, Finding, PrecisionClass, PrecisionReport, SpeedClaim, TimingResult

FASTER_THAN_PHYSICS = 0.8
BUSY = 0.1
"""On two quiet cores other programs took up to 3% while 15 kernels were timed; one that spins takes half of them, and a
reference that runs on both cores then waits for it where a kernel on one does not."""


def precision_report(bench: Bench, rules: Rules, outcome: Outcome) -> PrecisionReport | None:
    """The accuracy over the problem's own inputs, worst trial; None where nothing was compared in floating point."""
    trial = bench.trial(OWN, 0)
    floating = [i for i, t in enumerate(trial.reference) if t.is_floating_point()]
    rows = [t for t in outcome.trials if t.kind == OWN and t.error is not None and t.reference_error is not None]
    if not rows or not floating:
        return None
    worst = max(rows, key=lambda r: r.error.rms if r.error is not None else 0.0)
    assert worst.error is not None and worst.reference_error is not None
    which, scale = floating[0], worst.error.scale
    limit = bench.limit(trial, which, rules.demanded) if worst.conditioned is None else Limit(*worst.conditioned)
    dtype = trial.reference[which].dtype
    relative = worst.error.rms / scale if scale else 0.0
    reference = worst.reference_error.rms / scale if scale else 0.0
    return PrecisionReport(
        # Where last bits of the inputs make the output, what fp32 costs on other inputs says nothing.
        measured=classify(relative, bench.floor, dtype) if worst.conditioned is None else PrecisionClass.FP32,
        reference=classify(reference, bench.floor, dtype),
        candidate_rms=worst.error.rms,
        reference_rms=worst.reference_error.rms,
        floor_rms=floor_limit(bench.floor, trial.errors[which], dtype).rms,
        limit_rms=limit.rms,
        candidate_max=worst.error.maximum,
        limit_max=limit.maximum,
        conditioned=worst.conditioned is not None,
        oracle=bench.oracle,
    )


def timing_result(
    measured: Measured,
    floor: Floor,
    baselines: dict[str, Baseline],
    best: str | None,
    device: Literal["cuda", "cpu"],
    seconds: float,
    evidence: Evidence,
    caveats: list[Finding],
) -> TimingResult:
    """`baselines` were timed at another moment: they are carried over by their ratio to eager. `best` is the one that
    the candidate is compared with."""
    rounds = measured.rounds
    mine, theirs = rounds.times("candidate"), rounds.times("reference")
    candidate = statistics.interval(mine)
    findings = [*caveats, *(f for f in (measured.mismatch, measured.ahead) if f is not None)]
    if not floor.cached and candidate.value < FASTER_THAN_PHYSICS * floor.memory_us:
        us, least = candidate.value, floor.memory_us
        summary = f"{us:.1f} us is less than the {least:.1f} us that moving the problem's bytes takes here"
        findings.append(observe("faster_than_physics", summary, severity="warning", us=us, floor_us=least))
    if device == "cpu" and rounds.bystanders > BUSY:
        summary = f"other programs took {rounds.bystanders:.0%} of this machine's processors while it was timed"
        findings.append(observe("busy_machine", summary, severity="warning", share=round(rounds.bystanders, 3)))
    trusted = rounds.clock == "device"
    over_best = statistics.product(measured.speedup, baselines[best].to_eager) if best else None
    host_us = float(np.median(rounds.column("candidate", "host_us"))) if trusted and device == "cuda" else None
    mine_in_a_row, theirs_in_a_row = measured.in_a_row or (None, None)
    if host_us is not None and mine_in_a_row is not None and (bound := launch_bound(host_us, mine_in_a_row)):
        findings.append(bound)
    if measured.claim is SpeedClaim.FASTER and measured.in_a_row and (slower := slower_in_a_row(*measured.in_a_row)):
        findings.append(slower)
    # Hot calls have no other clock than the worker's own.
    hot = [float(np.median([r.us for r in side])) if trusted else None for side in measured.hot]
    return TimingResult(
        candidate_us=candidate,
        reference_us=statistics.interval(theirs),
        speedup=measured.speedup,
        claim=measured.claim,
        null_spread=measured.null,
        samples=len(mine),
        dropped=rounds.dropped,
        method=METHOD[rounds.clock][device],
        candidate_hot_us=hot[0],
        reference_hot_us=hot[1],
        host_overhead_us=host_us,
        in_a_row_us=mine_in_a_row,
        reference_in_a_row_us=theirs_in_a_row,
        baselines_us={name: baseline.us for name, baseline in baselines.items()},
        best_baseline=best,
        speedup_over_best=over_best.value if over_best else None,
        speedup_over_best_low=over_best.low if over_best else None,
        speedup_over_best_high=over_best.high if over_best else None,
        floor_us=floor.us,
        floor_limited_by=floor.limited_by,
        fraction_of_floor=floor.us / candidate.value if candidate.value else None,
        findings=findings,
        seconds=seconds,
        evidence=evidence,
    )
