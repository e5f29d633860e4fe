"""What timed calls return is held against what the reference returns on the same inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

from tools.judge.compare import APART, admits, apart, equal_number
from tools.judge.errors import identical, measure, wrong_elements
from tools.judge.failures import CandidateFailed
from tools.judge.findings import observe
from tools.judge.inputs import HUGE, OWN
from tools.judge.limits import FEW_AT_EDGES, MOST_AT_EDGES, SPECIAL_RELATIVE, Limit
from tools.judge.state_check import comparable, state_limit
from tools.judge.trial import Trial
from tools.types import PrecisionClass, Verdict
from tools.worker.arena import tensor_at
from tools.worker.trees import numbers, structure

if TYPE_CHECKING:
    import torch

    from tools.judge.bench import Bench
    from tools.judge.client import Reply
    from tools.judge.module_state import State
    from tools.judge.session import Session

SUMMARY = 64
TIMED = "timed"


@dataclass(frozen=True)
class Exact:
    """How many integers or bools may be others, and how far off, where that is known (not 0)."""

    count: int
    farthest: float = 0.0

    def admits(self, mine: torch.Tensor, theirs: torch.Tensor) -> bool:
        count = int((mine != theirs).sum())
        if not count or not self.farthest:
            return count <= self.count
        return count <= self.count and float(apart(mine, theirs).max()) <= self.farthest


class TimedOutputs:
    """How far each output of a timed call may lie from the reference's. `outlier` says that one element of the inputs
    outweighs the others, so that a scale measured once would not do."""

    def __init__(self, bench: Bench, demanded: PrecisionClass | None) -> None:
        first = bench.trial(OWN, 0)
        self._bench, self._demanded, self._spec = bench, demanded, first.spec
        self._allowed = [_allowance(bench, first, i, demanded) for i in range(len(first.reference))]
        self.outlier = is_summary(first) and bench.trial(HUGE, 0).sound
        self._state = {
            first.state[i].name: _state_allowance(bench, first, i, demanded) for i in comparable(bench, first)
        }

    def verify(
        self,
        candidate: list[torch.Tensor],
        reference: list[torch.Tensor],
        given: Callable[[], list[torch.Tensor]],
        seed: int | None,
        *,
        outlier: bool = False,
    ) -> None:
        """Raises CandidateFailed unless the candidate's outputs are the reference's, or right by the rule of a check
        for the inputs that were `given`, under `seed` where forward draws random numbers. `outlier` says whether
        inputs held one."""
        good = partial(self._good, outlier=outlier)
        if len(candidate) == len(reference) and all(map(good, candidate, reference, self._allowed)):
            return
        if self._right(candidate, given(), seed, unsound=not outlier):
            return
        finding = observe("time_checked_output_wrong", "right when checked, wrong while it was timed")
        raise CandidateFailed(Verdict.CHEATING, finding)

    def verify_form(self, candidate: Reply, reference: Reply) -> None:
        """Raises CandidateFailed unless structure and numbers of both replies are the same."""
        try:
            same = structure(candidate.outputs) == structure(reference.outputs) and all(
                map(equal_number, numbers(candidate.outputs), numbers(reference.outputs))
            )
        except (KeyError, TypeError, RecursionError, ValueError):
            same = False
        if not same:
            summary = "returns the right structure and numbers when checked, and others while it was timed"
            raise CandidateFailed(Verdict.CHEATING, observe("time_checked_output_wrong", summary))

    def _right(
        self, candidate: list[torch.Tensor], given: list[torch.Tensor], seed: int | None, *, unsound: bool
    ) -> bool:
        """What the allowance, which is that of another draw, refuses may be right all the same. `unsound` is what is
        said of inputs on which the reference itself is not."""
        bench = self._bench
        trial = bench.compute(TIMED, seed or 0, self._spec, given)
        if len(candidate) != len(trial.reference) or any(
            (a.shape, a.dtype) != (b.shape, b.dtype) for a, b in zip(candidate, trial.reference, strict=True)
        ):
            return False
        if not trial.sound:
            return unsound
        return all(admits(bench, trial, i, output, self._demanded) for i, output in enumerate(candidate))

    def verify_state(self, candidate: State, reference: State, *, outlier: bool) -> None:
        """Raises CandidateFailed unless a call has left in the candidate's buffers what it left in the reference's."""
        for name, allowed in self._state.items():
            if name not in candidate or self._good(candidate[name], reference[name], allowed, outlier=outlier):
                continue
            summary = f"leaves the right values in the buffer {name} when checked, and others while it was timed"
            finding = observe("time_checked_output_wrong", summary, buffer=name)
            raise CandidateFailed(Verdict.CHEATING, finding)

    def _good(self, mine: torch.Tensor, theirs: torch.Tensor, allowed: Limit | Exact, *, outlier: bool) -> bool:
        if mine.shape != theirs.shape or mine.dtype != theirs.dtype:
            return False
        if isinstance(allowed, Exact):
            return allowed.admits(mine, theirs)
        found = measure(mine, theirs)
        if outlier:
            # Its scale is another one in every round.
            allowed = Limit(
                max(allowed.rms, 2 * SPECIAL_RELATIVE * found.scale),
                max(allowed.maximum, 10 * SPECIAL_RELATIVE * found.peak),
            )
        if found.unsound or found.rms > allowed.rms:
            return False
        if found.maximum <= allowed.maximum:
            return True
        # At the edge of two steps both are right. What lies there was looked at when it was checked.
        beyond = wrong_elements(mine, theirs, allowed.maximum)
        return beyond <= 2 * (MOST_AT_EDGES + mine.numel() // FEW_AT_EDGES)


def landed(bench: Bench, reply: Reply, *, keep: bool) -> list[torch.Tensor]:
    """The outputs of a reply; only with `keep` do they outlast the next call. Raises CandidateFailed where they are
    said to lie where there is nothing."""
    bench.synchronize()
    try:
        views = [tensor_at(bench.arenas["landing"], place.model_dump()) for place in reply.tensors]
    except (LookupError, RuntimeError, TypeError, ValueError) as error:
        summary = "the outputs are described in a form that our worker never sends"
        raise CandidateFailed(Verdict.CHEATING, observe("forged_reply", summary)) from error
    return [v.clone() for v in views] if keep else views


def changed_inputs(bench: Bench, which: Sequence[int], slot: int, *, keep: bool) -> list[torch.Tensor]:
    """Inputs that count as outputs, as they are now in `slot`; only with `keep` do they outlast what is put there."""
    views = [tensor_at(bench.arenas["inputs"], bench.slots[slot][i]) for i in which]
    return [v.clone() for v in views] if keep else views


def inputs_kept(
    candidate: Session, given: list[torch.Tensor], may_change: Sequence[int], slot: int, *, hold: bool = False
) -> None:
    """Raises CandidateFailed where its last timed call has changed inputs that the reference leaves alone. `slot` of
    the shared buffer is overwritten. With `hold` the outputs of that call are held."""
    bench = candidate.bench
    places = bench.slots[slot]
    candidate.timed.changed_inputs(slot, hold=hold)
    for i, (tensor, place) in enumerate(zip(given, places, strict=True)):
        if i not in may_change and not identical(tensor, tensor_at(bench.arenas["inputs"], place)):
            summary = f"leaves its inputs alone when checked, and changes input {i} while it was timed"
            raise CandidateFailed(Verdict.CHEATING, observe("time_checked_output_wrong", summary, input=i))


def is_summary(trial: Trial) -> bool:
    """Whether outputs are much smaller than inputs: each element sums so many up that a part of them can stand for all,
    within what honest arithmetic may be off."""
    outputs = sum(t.numel() for t in trial.reference)
    return SUMMARY * outputs <= sum(t.numel() for t in trial.tensors if t.is_floating_point())


def _state_allowance(bench: Bench, trial: Trial, i: int, demanded: PrecisionClass | None) -> Limit | Exact:
    change = trial.state[i]
    if not change.after.is_floating_point():
        return Exact(int((change.after != change.truth.to(change.after.dtype)).sum()))
    limit, error = state_limit(bench, trial, i, demanded), change.error
    return Limit(1.5 * (limit.rms + error.rms), 2 * (limit.maximum + error.maximum))


def _allowance(bench: Bench, trial: Trial, i: int, demanded: PrecisionClass | None) -> Limit | Exact:
    """How far output `i` of a timed call may be from the reference's."""
    reference = trial.reference[i]
    if not reference.is_floating_point():
        oracle = trial.oracle[i].to(reference.dtype)
        farthest = float(apart(reference, oracle).max()) if reference.numel() else 0.0
        return Exact(2 * int((reference != oracle).sum()) + 2, 2 * APART * farthest)
    limit, error = bench.limit(trial, i, demanded), trial.errors[i]
    return Limit(1.5 * (limit.rms + error.rms), 2 * (limit.maximum + error.maximum))
