"""Buffers that the reference's forward changes: a candidate must leave there what the reference does.

They are compared with the oracle's by the rule for outputs, after a forward and after another one that goes on from
there: whoever overwrites a running statistic instead of moving it is right once.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import torch

from tools.judge import inputs as kinds
from tools.judge import limits as rule
from tools.judge import module_state
from tools.judge.bench import Bench
from tools.judge.errors import identical, measure, worst_element, wrong_elements
from tools.judge.findings import observe
from tools.judge.limits import Limit
from tools.judge.outcome import Failed
from tools.judge.repeats import POISONS
from tools.judge.trial import Change, Trial
from tools.types import Finding, PrecisionClass, Verdict

if TYPE_CHECKING:
    from tools.judge.check import Check

SECOND = 2.0
"""So many times wider is the limit after a second forward, which starts from what the first was off by."""


def state_after(check: Check) -> None:
    """Two forwards in a row from the state that models are constructed with. Raises Failed."""
    bench = check.bench
    first = bench.trial(kinds.OWN, 0)
    if not first.state:
        return
    _unmatched(check, first)
    check.execute(first, 0, POISONS[0])
    _hold(check, first)
    base = bench.trial(kinds.OWN, 1)
    later = copy.deepcopy(bench.model)
    module_state.put(later, {change.name: change.after for change in first.state})
    second = bench.compute("state", base.seed, base.spec, base.tensors, later)
    if second.refused:
        return
    reply = check.execute(second, 1, POISONS[1], restore=False)
    found = check.compare_trial(second, reply, 1)
    if second.sound and not found.passed:
        names = ", ".join(change.name for change in first.state)
        summary = f"right on the first forward, wrong on the next, which starts from the updated buffers ({names})"
        raise Failed(Verdict.WRONG_RESULT, observe("wrong_with_state", summary), *found.findings)
    _hold(check, second)


def state_limit(bench: Bench, trial: Trial, index: int, demanded: PrecisionClass | None) -> Limit:
    """The limit on the values of the buffer `trial.state[index]`."""
    change = trial.state[index]
    place = len(trial.reference) + index
    found = rule.own_limit(bench.floor, change.error, change.after.dtype, demanded, place)
    return found if trial.kind == kinds.OWN else Limit(SECOND * found.rms, SECOND * found.maximum)


def comparable(bench: Bench, trial: Trial) -> list[int]:
    """Indices of the changes of a trial that a candidate is held to: not batch counters on which nothing depends, nor
    what the reference itself makes no sense of."""
    counters = module_state.counters(bench.model)
    return [
        i
        for i, change in enumerate(trial.state)
        if change.name not in counters and not change.error.unsound and not change.after.is_complex()
    ]


def _hold(check: Check, trial: Trial) -> None:
    """Hold what is in the candidate's state against what the trial's forward makes of it. Raises Failed, with a finding
    for each buffer that is wrong: one at a time would cost a model a turn for each."""
    bench, landed = check.bench, check.session.changed_state()
    held, matched = comparable(bench, trial), {ours for _, ours in check.session.mapping.pairs}
    wrong: list[Finding] = []
    for i, change in enumerate(trial.state):
        value = landed.get(change.name)
        if change.name not in matched:
            continue  # looked at before
        if i not in held:
            _note_counter(check, change, value)
            continue
        finding = _wrong(bench, change, value, state_limit(bench, trial, i, check.rules.demanded))
        if finding is not None:
            wrong.append(finding)
    if wrong:
        raise Failed(Verdict.WRONG_RESULT, *wrong)


def _wrong(bench: Bench, change: Change, value: torch.Tensor | None, limit: Limit) -> Finding | None:
    name, rest = change.name, f"the reference's forward {_effect(bench, change)}"
    if value is None:
        summary = (
            f"the buffer {name} is gone after forward, or of another shape or dtype; {rest}: keep it, and update it"
        )
        return observe("state_not_updated", summary, buffer=name)
    if change.after.is_floating_point():
        error = measure(value, change.truth)
        if limit.admits(error):
            return None
        count = max(wrong_elements(value, change.truth, limit.maximum), 1)
    else:
        count = int(((value != change.after) & (value != change.truth.to(change.after.dtype))).sum())
        if not count:
            return None
    if identical(value, change.before):
        summary = f"leaves the buffer {name} as it was; {rest}: do that in forward too"
        return observe("state_not_updated", summary, buffer=name)
    where = worst_element(value, change.truth)
    mine, right = float(value[tuple(where)]), float(change.truth[tuple(where)])
    summary = (
        f"leaves wrong values in the buffer {name}: {count} of {value.numel()}, at {where} {mine:.6g} "
        f"where {right:.6g} is right; {rest}"
    )
    return observe("wrong_state", summary, buffer=name, wrong=count, elements=value.numel())


def _note_counter(check: Check, change: Change, value: torch.Tensor | None) -> None:
    same = value is not None and torch.equal(value, change.after)
    if same or change.after.is_floating_point() or any(f.code == "state_counter" for f in check.outcome.findings):
        return
    summary = f"leaves the counter {change.name} behind the reference's; no result depends on it here"
    check.outcome.findings.append(observe("state_counter", summary, "note", buffer=change.name))


def _unmatched(check: Check, first: Trial) -> None:
    """Changed buffers that correspond to no entry of the candidate's state: another entry that its own forward changes
    may be meant, which is a note; where there is none the update is missing."""
    session, bench = check.session, check.bench
    matched = {ours for _, ours in session.mapping.pairs}
    missing = [first.state[i] for i in comparable(bench, first) if first.state[i].name not in matched]
    if not missing:
        return
    taken = {theirs for theirs, _ in session.mapping.pairs}
    check.execute(first, 0, POISONS[0])
    before = session.digests()
    # Other inputs than those of the last forward: statistics of a batch alone would stay as they are.
    check.execute(bench.trial(kinds.OWN, 1), 1, POISONS[1])
    after = session.digests()
    moved = {n: shape for n, _, shape in session.entries if n not in taken and before.get(n) != after.get(n)}
    absent: list[Finding] = []
    for change in missing:
        fits = [name for name, shape in moved.items() if shape == tuple(change.after.shape)]
        rest = f"the reference's forward {_effect(bench, change)}"
        if not fits:
            summary = (
                f"no entry in the state of ModelNew stands for the buffer {change.name}, and none is updated in its "
                f"place; {rest}: register a buffer of that name and update it in forward"
            )
            absent.append(observe("state_not_updated", summary, buffer=change.name))
            continue
        summary = (
            f"the buffer {change.name} was not compared: it may be {' or '.join(fits)} here, which neither name nor "
            f"first values tell; {rest}"
        )
        check.outcome.findings.append(observe("state_not_matched", summary, "note", buffer=change.name))
    if absent:
        raise Failed(Verdict.WRONG_RESULT, *absent)


def _effect(bench: Bench, change: Change) -> str:
    """What the reference does to a buffer, in words that follow "forward"."""
    known = module_state.update_rule(bench.model, change.name)
    if known:
        return known
    moved = (change.before != change.after).reshape(-1)
    at = int(moved.to(torch.uint8).argmax())
    old, new = (float(t.reshape(-1)[at]) for t in (change.before, change.after))
    return f"changes {int(moved.sum())} of its {moved.numel()} elements, the first of them from {old:.6g} to {new:.6g}"
