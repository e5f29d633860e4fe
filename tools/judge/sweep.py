"""A sweep: variants of one kernel, each checked lightly, the fastest of them found by successive halving.

The light check is two of the problem's own trials, and one timed call held against the reference's output. It only
weeds out what is plainly wrong: no variant is correct before the full check. Timing goes over the variants side by
side, all in a round on the same fresh values in random order with one call of the reference, so that a round's ratios
share whatever the machine was doing. Every rung keeps the faster half, without those that can't be the fastest any
more, and doubles the rounds.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from tools.build.slots import available_memory
from tools.judge import statistics
from tools.judge.bench import Bench
from tools.judge.check import Check, Failed, Rules
from tools.judge.client import Reply
from tools.judge.failures import CandidateFailed, violation
from tools.judge.inputs import OWN
from tools.judge.session import Program, Session
from tools.judge.timed_outputs import landed
from tools.judge.timing import Timer
from tools.tuning.records import SweepRow
from tools.types import Finding, Interval, Verdict

QUICK_TRIALS = 2
FIRST_ROUNDS = 6
MOST_ROUNDS = 24
LEAST_ROUNDS = 3
FINALISTS = 2
CLOSE = 1.02
"""Variants as close as this to the best one's interval stay in the race."""

RUNG_SECONDS = 8.0
"""A rung ends here with fewer rounds, but not with fewer than LEAST_ROUNDS."""

MOST_SEATS = 8
PROCESS_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}
"""What a worker takes besides inputs and outputs: a CUDA context, above all."""


@dataclass(eq=False)
class Contender:
    """A variant in the race. `mine` and `reference` are samples in microseconds, taken in the same rounds."""

    program: Program
    session: Session | None = None
    loaded: bool = False
    checked: bool = False
    alone: bool = False
    verdict: Verdict | None = None
    finding: Finding | None = None
    mine: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)
    rungs: int = 0

    @property
    def ratio(self) -> float:
        return float(np.median(self.reference) / np.median(self.mine)) if self.mine else 0.0

    def speedup(self) -> Interval:
        return statistics.ratio(np.array(self.reference), np.array(self.mine))

    def fail(self, verdict: Verdict, finding: Finding | None) -> None:
        """The first verdict stays."""
        if self.verdict is None:
            self.verdict, self.finding = verdict, finding

    def row(self) -> SweepRow:
        if self.verdict is not None or not self.mine:
            return SweepRow(verdict=self.verdict, finding=self.finding)
        return SweepRow(
            candidate_us=statistics.interval(np.array(self.mine)),
            speedup=self.speedup(),
            samples=len(self.mine),
            rungs=self.rungs,
        )


def running(group: Sequence[Contender], done: int) -> list[Contender]:
    """Those to be timed after `done` rounds of a rung: what takes twice as long as the best needs no more of them."""
    alive = [one for one in group if one.verdict is None]
    if done < LEAST_ROUNDS:
        return alive
    best = max((one.ratio for one in alive), default=0.0)
    return [one for one in alive if one.ratio >= 0.5 * best]


def survivors(alive: Sequence[Contender]) -> list[Contender]:
    """The faster half after a rung, best first, without those whose interval lies clearly below the best one's."""
    ranked = sorted(alive, key=lambda one: -one.ratio)[: max(FINALISTS, (len(alive) + 1) // 2)]
    best = ranked[0].speedup().low
    return [ranked[0], *(one for one in ranked[1:] if CLOSE * one.speedup().high >= best)]


class Sweep:
    """Sweeps over built programs. `open_session` starts a worker for one; `reference` is loaded already."""

    def __init__(
        self,
        bench: Bench,
        open_session: Callable[[Program], Session],
        reference: Session,
        rules: Rules,
        throttle: Callable[[], str],
    ) -> None:
        self.bench = bench
        self.rules = rules
        self.reference = reference
        self._open_session = open_session
        self._throttle = throttle
        self._timer = Timer(bench, (reference, reference), rules.demanded, throttle)
        self._random = random.Random(bench.seed_of(1002))
        self._all: list[Contender] = []

    def run(self, programs: Sequence[Program]) -> list[SweepRow]:
        """One row a program, in their order. Nothing that a program does ends the sweep."""
        self._all = [Contender(program) for program in programs]
        try:
            self._race()
        finally:
            for one in self._all:
                self._leave(one)
        return [one.row() for one in self._all]

    def _race(self) -> None:
        alive, rounds = list(self._all), FIRST_ROUNDS
        while alive:
            self._rung(alive, rounds)
            alive = [one for one in alive if one.verdict is None]
            if len(alive) <= FINALISTS and rounds >= MOST_ROUNDS:
                return
            alive = survivors(alive) if alive else []
            if len(alive) <= 1:
                return
            rounds = min(2 * rounds, MOST_ROUNDS)

    def _rung(self, alive: list[Contender], rounds: int) -> None:
        seats = self._seats()
        together = [one for one in alive if not one.alone]
        waiting = [together[start : start + seats] for start in range(0, len(together), seats)]
        waiting += [[one] for one in alive if one.alone]
        seconds = RUNG_SECONDS / len(waiting)
        while waiting:
            group = waiting.pop(0)
            self._seat(group, 1 if group[0].alone else seats)
            if waiting:
                self._open(waiting[0])  # they start while this group is checked
            self._check(group)
            self._rehearse(group)
            self._rounds(group, rounds, seconds)
            for one in group:
                if one.verdict is not None:
                    self._leave(one)
            # What found too little memory in company is tried alone.
            waiting += [[one] for one in group if one.alone and not one.loaded and one.verdict is None]

    def _seats(self) -> int:
        """How many variants may hold their outputs in memory at once."""
        trial = self.bench.trial(OWN, 0)
        outputs = sum(t.nbytes for t in trial.reference)
        each = PROCESS_BYTES[self.bench.device] + sum(t.nbytes for t in trial.tensors) + outputs * 5 // 4
        held = sum(one.loaded for one in self._all)
        if self.bench.device == "cuda":
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info()[0]
        else:
            free = available_memory()
        # The judge itself keeps the reference's output to compare with, and computes trials.
        return max(1, min(MOST_SEATS, held + int(0.9 * free - 2 * outputs) // each))

    def _open(self, group: list[Contender]) -> None:
        """Start the processes of a group, side by side."""
        for one in group:
            if one.session is None:
                one.session = self._open_session(one.program)

    def _seat(self, group: list[Contender], seats: int) -> None:
        """Load the variants of a group, and let others go where there is no room for all."""
        others = [one for one in self._all if one.loaded and one not in group]
        if len(others) + len(group) > seats:
            for one in others:
                self._leave(one)
        self._open(group)
        for one in group:
            if one.session is not None and not one.loaded:
                one.loaded = True
                with self._blaming(one):
                    one.session.load()

    def _check(self, group: list[Contender]) -> None:
        """The light check of those that have not been through it."""
        fresh = [one for one in group if one.loaded and not one.checked]
        checks = [Check(self.bench, one.session, self.rules) for one in fresh if one.session is not None]
        for index in range(QUICK_TRIALS):
            # Trial by trial: where memory keeps but one, it is computed once for all variants.
            for one, check in zip(fresh, checks, strict=True):
                if one.loaded and one.verdict is None:
                    with self._blaming(one):
                        check.own_trial(index)
                        one.checked = index == QUICK_TRIALS - 1

    def _leave(self, one: Contender) -> None:
        """End a variant's process; what its sandbox has refused is told at the end."""
        if one.session is None:
            return
        tried = one.session.worker.violations()
        one.session.worker.close()
        one.session, one.loaded = None, False
        if tried:
            one.fail(Verdict.SANDBOX_VIOLATION, violation(tried))

    @contextlib.contextmanager
    def _blaming(self, one: Contender) -> Generator[None]:
        """What goes wrong inside is this variant's end, and nobody else's."""
        try:
            yield
        except CandidateFailed as failed:
            if failed.finding.observed.get("type") == "OutOfMemoryError" and not one.alone:
                one.alone = True
                self._leave(one)
            else:
                one.fail(failed.verdict, failed.finding)
        except Failed as failed:
            one.fail(failed.verdict, failed.findings[0] if failed.findings else None)

    def _rehearse(self, group: list[Contender]) -> None:
        """Warm every side with timed calls that don't count, and hold one output of each against the reference's."""
        timer = self._timer
        timer.fresh_inputs(0)
        seed = timer.seed()
        expected = landed(self.bench, self._call(self.reference, 0, seed, poison=True), keep=True)
        for one in group:
            if one.verdict is None and one.session is not None and one.loaded:
                with self._blaming(one):
                    self._call(one.session, 0, seed)
                    found = landed(self.bench, self._call(one.session, 0, seed, poison=True), keep=False)
                    timer.verify(found, expected, seed)

    def _rounds(self, group: list[Contender], rounds: int, seconds: float) -> None:
        stop = time.monotonic() + seconds
        for done in range(rounds):
            if done >= LEAST_ROUNDS and time.monotonic() > stop:
                break
            state = self._throttle()
            taken = self._round([one for one in running(group, done) if one.loaded], done % 2)
            if self._throttle() != state and done >= LEAST_ROUNDS:
                continue  # the clocks changed in the middle of it
            for one, mine, reference in taken:
                one.mine.append(mine)
                one.reference.append(reference)
        for one in group:
            one.rungs += one.loaded and one.verdict is None

    def _round(self, group: list[Contender], slot: int) -> list[tuple[Contender, float, float]]:
        """Each variant and the reference once, on the same fresh values: variant, its time, the reference's."""
        self._timer.fresh_inputs(slot)
        seed = self._timer.seed()
        order: list[Contender | None] = [None, *group]
        self._random.shuffle(order)
        reference, taken = 0.0, list[tuple[Contender, float]]()
        for one in order:
            if one is None:
                reference = self._call(self.reference, slot, seed).us
            elif one.session is not None:
                with self._blaming(one):
                    taken.append((one, self._call(one.session, slot, seed).us))
        return [(one, mine, reference) for one, mine in taken]

    def _call(self, session: Session, slot: int, seed: int | None, *, poison: bool = False) -> Reply:
        if poison:
            self.bench.poison_landing(0xFF)
        self.bench.synchronize()
        return session.timed.time(self._timer.spec, slot, cold=True, seed=seed)[0]
