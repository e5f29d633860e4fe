"""The same inputs again: every run gives the same bits, a held output stays as it is, and inputs are waited for."""

from __future__ import annotations

import dataclasses
import random
import time
from typing import TYPE_CHECKING, Any

import torch

from tools.judge import inputs as kinds
from tools.judge.compare import Comparison, collect, compare
from tools.judge.errors import identical
from tools.judge.findings import observe
from tools.judge.outcome import Failed
from tools.types import Verdict

if TYPE_CHECKING:
    from tools.judge.check import Check

IDENTICAL_RUNS = 20
ALIKE = 3
"""So many runs in a row must give the other result before it is said to come of counting calls: a race that shows in
the last run of all gives one, too."""

IDENTICAL_SECONDS = {"cpu": 0.5, "cuda": 0.4}
HELD_OVER = (2, 5)
"""Calls that an output must survive: whoever takes turns with a few buffers is found sooner or later."""

POISONS = (0xFF, 0x7F)
"""0xFF is NaN in every floating type; 0x7F is NaN in fp16, 3.4e38 in fp32: two runs differ where unwritten memory
shows."""


def identical_runs(check: Check) -> None:
    """The same inputs again and again, at both addresses and over both poisons: the bits must stay the same."""
    trial = check.bench.trial(kinds.OWN, 0)
    first: list[torch.Tensor] = []
    stop = time.monotonic() + IDENTICAL_SECONDS[check.bench.device]
    ran, unequal = dict.fromkeys(POISONS, 0), dict.fromkeys(POISONS, 0)
    later: dict[int, list[torch.Tensor]] = {}
    """Outputs from the first that was another one on, one for each poison, as long as they stay the same."""

    switched, counts = 0, True
    worst: Comparison | None = None
    runs = 0
    while (runs < IDENTICAL_RUNS and (runs < 4 or time.monotonic() < stop)) or 0 < runs - (switched or runs) < ALIKE:
        poison = POISONS[(runs // 2) % 2]
        reply = check.execute(trial, runs % 2, poison)
        outputs = collect(check.bench, trial, reply, runs % 2)
        ran[poison] += 1
        if not first:
            first = [t.clone() for t in outputs]
        elif all(identical(a, b) for a, b in zip(first, outputs, strict=True)):
            counts = counts and not later
        else:
            switched = switched or runs
            known = later.setdefault(poison, [t.clone() for t in outputs])
            counts = counts and all(identical(a, b) for a, b in zip(known, outputs, strict=True))
            unequal[poison] += 1
            found = compare(check.bench, trial, reply, runs % 2, check.rules.demanded)
            worst = found if worst is None or not found.passed else worst
        runs += 1
    if worst is None:
        return
    facts: dict[str, Any] = {"runs": runs, "different": sum(unequal.values())}
    if worst.passed:
        summary = f"{facts['different']} of {runs} identical runs differ in their last bits, within the error of fp32"
        check.outcome.findings.append(observe("run_to_run", summary, severity="note", **facts))
        return
    if counts and switched >= 4 and runs - switched >= ALIKE:
        summary = f"the first {switched} of {runs} identical runs give one result, all later ones another, wrong one"
        raise Failed(Verdict.CHEATING, observe("call_counting", summary, **facts, first=switched), *worst.findings)
    # One of many runs may go wrong over that poison by chance.
    by_poison = unequal[POISONS[0]] == 0 and 2 * unequal[POISONS[1]] >= ran[POISONS[1]]
    code = "poison_dependent" if by_poison else "race"
    summary = f"{facts['different']} of {runs} identical runs give another, wrong result"
    raise Failed(Verdict.NONDETERMINISTIC, observe(code, summary, **facts), *worst.findings)


def held_output(check: Check) -> None:
    """An output that the caller still holds must survive the calls to come."""
    first = check.bench.trial(kinds.OWN, 0)
    # What is right for them is not asked here, so that no second trial has to find room.
    seed = check.bench.seed_of(1)
    second = dataclasses.replace(first, seed=seed, tensors=check.bench.problem.inputs(seed)[1])
    kept = check.execute(first, 0, POISONS[0], keep=True)
    expected = [t.clone() for t in collect(check.bench, first, kept, 0)][: len(kept.tensors)]
    for _ in range(random.SystemRandom().randint(*HELD_OVER)):
        check.execute(second, 1, POISONS[0])
    again = check.session.land_kept()
    held = [t for t in collect(check.bench, first, again, 0)][: len(again.tensors)]
    if not all(identical(a, b) for a, b in zip(expected, held, strict=True)):
        finding = observe("aliases_previous_output", "a later call overwrites an output that was returned before")
        raise Failed(Verdict.WRONG_RESULT, finding)


def late_inputs(check: Check) -> None:
    """Work on another stream must wait for the one that the inputs come from, and that one for the outputs."""
    trial = check.bench.trial(kinds.OWN, 0)
    if check.bench.device != "cuda" or trial.may_change:
        return
    reply = check.execute(trial, 0, POISONS[0], late=True)
    found = compare(check.bench, trial, reply, 0, check.rules.demanded)
    if not found.passed:
        summary = "right when the device is idle, wrong when earlier work on the current stream is not done yet"
        raise Failed(Verdict.NONDETERMINISTIC, observe("unordered_stream", summary), *found.findings)
