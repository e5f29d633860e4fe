"""A sweep: variants of one kernel, each checked lightly, the fastest of them found by successive halving.

The light check is two of the problem's own trials, and one timed call held against the reference's output. It only
weeds out what is plainly wrong: no variant is correct before the full check. Timing goes over the variants side by
side, all in a round on the same fresh values in random order with one call of the reference, so that a round's ratios
share whatever the machine was doing. Every rung keeps the faster half and doubles the rounds.
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
from tools.judge.client import CandidateFailed, Reply, violation
from tools.judge.inputs import OWN
from tools.judge.session import Program, Session
from tools.judge.timing import Timer
from tools.tuning.records import SweepRow
from tools.types import Finding, Verdict

QUICK_TRIALS = 2
FIRST_ROUNDS = 6
MOST_ROUNDS = 24
LEAST_ROUNDS = 3
FINALISTS = 2
RUNG_SECONDS = 8.0
"""A rung ends here with fewer rounds, but not with fewer than LEAST_ROUNDS."""

MOST_SEATS = 8
PROCESS_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}
"""What a worker takes besides inputs and outputs: buffers that flush caches, a CUDA context."""


@dataclass
class _Variant:
    program: Program
    session: Session | None = None
    verdict: Verdict | None = None
    finding: Finding | None = None
    mine: list[float] = field(default_factory=list)
    reference: list[float] = field(default_factory=list)
    rungs: int = 0

    @property
    def ratio(self) -> float:
        return float(np.median(self.reference) / np.median(self.mine)) if self.mine else 0.0

    def fail(self, verdict: Verdict, finding: Finding | None) -> None:
        if self.verdict is None:
            self.verdict, self.finding = verdict, finding

    def row(self) -> SweepRow:
        mine, reference = np.array(self.mine), np.array(self.reference)
        timed = len(mine) > 0 and self.verdict is None
        return SweepRow(
            verdict=self.verdict,
            finding=self.finding,
            candidate_us=statistics.interval(mine) if timed else None,
            speedup=statistics.ratio(reference, mine) if timed else None,
            samples=len(mine) if timed else 0,
            rungs=self.rungs if timed else 0,
        )


def _contenders(group: list[_Variant], done: int) -> list[_Variant]:
    """Those still to be timed after `done` rounds: what takes twice as long as the best needs no more of them."""
    alive = [variant for variant in group if variant.verdict is None]
    if done < LEAST_ROUNDS:
        return alive
    best = max((variant.ratio for variant in alive), default=0.0)
    return [variant for variant in alive if variant.ratio >= 0.5 * best]


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
        self._timer = Timer(bench, reference, (reference, reference), rules.demanded, throttle)
        self._random = random.Random(bench.seed_of(1002))
        self._variants: list[_Variant] = []

    def run(self, programs: Sequence[Program]) -> list[SweepRow]:
        """One row a program, in their order. Nothing that a program does ends the sweep."""
        self._variants = [_Variant(program) for program in programs]
        try:
            self._halve()
        finally:
            for variant in self._variants:
                self._leave(variant)
        return [variant.row() for variant in self._variants]

    def _halve(self) -> None:
        alive, rounds = list(self._variants), FIRST_ROUNDS
        seats = self._seats()
        while alive:
            groups = [alive[start : start + seats] for start in range(0, len(alive), seats)]
            for group in groups:
                self._seat(group, seats)
                self._rehearse(group)
                self._rounds(group, rounds, RUNG_SECONDS / len(groups))
            alive = [variant for variant in alive if variant.verdict is None]
            if len(alive) <= 1 or (len(alive) <= FINALISTS and rounds >= MOST_ROUNDS):
                return
            alive = sorted(alive, key=lambda v: -v.ratio)[: max(FINALISTS, (len(alive) + 1) // 2)]
            rounds = min(2 * rounds, MOST_ROUNDS)

    def _seats(self) -> int:
        """How many variants may hold their outputs in memory at once."""
        trial = self.bench.trial(OWN, 0)
        each = PROCESS_BYTES[self.bench.device] + sum(t.nbytes for t in trial.tensors)
        each += 2 * sum(t.nbytes for t in trial.reference)
        if self.bench.device == "cuda":
            torch.cuda.empty_cache()
            free = torch.cuda.mem_get_info()[0]
        else:
            free = available_memory()
        return max(1, min(MOST_SEATS, int(0.8 * free) // each))

    def _seat(self, group: list[_Variant], seats: int) -> None:
        """Load the variants of a group, check those that are new, and let others go where there is no room."""
        others = [v for v in self._variants if v.session is not None and v not in group]
        if len(others) + len(group) > seats:
            for variant in others:
                self._leave(variant)
        fresh = [variant for variant in group if variant.session is None]
        for variant in fresh:  # all of them first: they start side by side
            variant.session = self._open_session(variant.program)
        checks: list[tuple[_Variant, Check]] = []
        for variant in fresh:
            assert variant.session is not None
            with self._blaming(variant):
                variant.session.load()
                if variant.rungs == 0:
                    checks.append((variant, Check(self.bench, variant.session, self.rules)))
        for index in range(QUICK_TRIALS):
            # Trial by trial: where memory keeps but one, it is computed once for all variants.
            for variant, check in checks:
                if variant.verdict is None:
                    with self._blaming(variant):
                        check.own_trial(index)

    def _leave(self, variant: _Variant) -> None:
        """End a variant's process; what its sandbox has refused is told at the end."""
        if variant.session is None:
            return
        tried = variant.session.worker.violations()
        variant.session.worker.close()
        variant.session = None
        if tried:
            variant.fail(Verdict.SANDBOX_VIOLATION, violation(tried))

    @contextlib.contextmanager
    def _blaming(self, variant: _Variant) -> Generator[None]:
        """What goes wrong inside is this variant's end, and nobody else's."""
        try:
            yield
        except CandidateFailed as failed:
            variant.fail(failed.verdict, failed.finding)
        except Failed as failed:
            variant.fail(failed.verdict, failed.findings[0] if failed.findings else None)

    def _rehearse(self, group: list[_Variant]) -> None:
        """Warm every side with timed calls that don't count, and hold one output of each against the reference's."""
        timer = self._timer
        timer._fresh_inputs(0)
        seed = timer._seed()
        expected = timer._landed(self._call(self.reference, 0, seed, poison=True), keep=True)
        for variant in group:
            if variant.verdict is None and variant.session is not None:
                with self._blaming(variant):
                    self._call(variant.session, 0, seed)
                    landed = timer._landed(self._call(variant.session, 0, seed, poison=True), keep=False)
                    timer._verify({"candidate": landed, "reference": expected})

    def _rounds(self, group: list[_Variant], rounds: int, seconds: float) -> None:
        stop = time.monotonic() + seconds
        for done in range(rounds):
            if done >= LEAST_ROUNDS and time.monotonic() > stop:
                break
            state = self._throttle()
            taken = self._round(_contenders(group, done), done % 2)
            if self._throttle() != state and done >= LEAST_ROUNDS:
                continue  # the clocks changed in the middle of it
            for variant, mine, reference in taken:
                variant.mine.append(mine)
                variant.reference.append(reference)
        for variant in group:
            variant.rungs += variant.verdict is None

    def _round(self, group: list[_Variant], slot: int) -> list[tuple[_Variant, float, float]]:
        """Each variant and the reference once, on the same fresh values: variant, its time, the reference's."""
        self._timer._fresh_inputs(slot)
        seed = self._timer._seed()
        order: list[_Variant | None] = [None, *group]
        self._random.shuffle(order)
        reference, taken = 0.0, list[tuple[_Variant, float]]()
        for variant in order:
            if variant is None:
                reference = self._call(self.reference, slot, seed).us
            elif variant.session is not None:
                with self._blaming(variant):
                    taken.append((variant, self._call(variant.session, slot, seed).us))
        return [(variant, mine, reference) for variant, mine in taken]

    def _call(self, session: Session, slot: int, seed: int | None, *, poison: bool = False) -> Reply:
        if poison:
            self.bench.poison_landing(0xFF)
        self.bench.synchronize()
        return session.time(self._timer._spec, slot, cold=True, seed=seed)[0]
