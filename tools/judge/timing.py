"""Timing: candidate and reference in two processes of the same kind, one call each in turn in random order.

Every round puts new values at another address, times the candidate and two processes of the reference, and compares the
candidate's output with the reference's. The second process gives the null spread: how far two processes that run the
same code lie apart, by the luck of their memory and of the scheduler. A call is timed by the worker's device clock,
cold caches, and the whole exchange by the judge's own clock: the two must tell the same story. Rounds go on until the
95% interval of the ratio lies within 1%, or the time is up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from tools.judge import statistics
from tools.judge.bench import Bench
from tools.judge.client import CandidateFailed, Reply
from tools.judge.errors import measure, wrong_elements
from tools.judge.findings import observe
from tools.judge.inputs import HUGE, OWN, put_outlier
from tools.judge.limits import FEW_AT_EDGES, MOST_AT_EDGES, SPECIAL_RELATIVE, Limit
from tools.judge.mixing import exchange
from tools.judge.session import Session
from tools.judge.trial import Trial
from tools.types import Finding, PrecisionClass, Verdict
from tools.worker.arena import tensor_at

WIDTH = 0.01
LEAST_ROUNDS = 20
MOST_ROUNDS = 400
SECONDS = {"cpu": 2.5, "cuda": 2.5}
THOROUGH = 4.0
"""How many times longer the winner is timed."""

WARM_CALLS = 8
"""More than a worker holds back of its memory (tools.worker.main): no timed call is the first to ask for some."""

WARM_SECONDS = {"cpu": 0.3, "cuda": 0.4}
LARGE_LANDING = 1 << 30
SUMMARY = 64
POOL = {"cpu": 4, "cuda": 3}
POOL_BYTES = {"cpu": 1 << 30, "cuda": 16 << 30}
METHOD = {
    "cpu": "paired calls in random order, caches flushed, two processes, monotonic clock",
    "cuda": "paired calls in random order, L2 written then read, two processes, CUDA events",
}
BY_WALL = "paired calls in random order, two processes, the judge's own clock with the exchange included"


@dataclass
class Rounds:
    """Samples in microseconds, one row a round: worker's clock, drained clock, host time and judge's clock."""

    candidate: list[Reply] = field(default_factory=list)
    reference: list[Reply] = field(default_factory=list)
    second: list[Reply] = field(default_factory=list)
    walls: dict[str, list[float]] = field(default_factory=lambda: {"candidate": [], "reference": [], "second": []})
    dropped: int = 0

    def by_wall(self) -> Rounds:
        """The same rounds timed by the judge's own clock, exchange included, which no candidate can reach."""
        sides = {
            side: [
                reply.model_copy(update={"us": wall}) for reply, wall in zip(getattr(self, side), walls, strict=True)
            ]
            for side, walls in self.walls.items()
        }
        return Rounds(sides["candidate"], sides["reference"], sides["second"], self.walls, self.dropped)

    def __add__(self, other: Rounds) -> Rounds:
        return Rounds(
            self.candidate + other.candidate,
            self.reference + other.reference,
            self.second + other.second,
            {side: walls + other.walls[side] for side, walls in self.walls.items()},
            self.dropped + other.dropped,
        )

    def column(self, side: str, name: str = "us") -> statistics.Samples:
        return np.array([getattr(reply, name) for reply in getattr(self, side)], dtype=np.float64)


class Timer:
    """Times one loaded candidate against one loaded reference on a bench."""

    def __init__(
        self,
        bench: Bench,
        candidate: Session,
        references: tuple[Session, Session],
        demanded: PrecisionClass | None,
        throttle: Callable[[], str],
        *,
        thorough: bool = False,
    ) -> None:
        self.bench = bench
        self.sides = {"candidate": candidate, "reference": references[0], "second": references[1]}
        self.demanded = demanded
        self._throttle = throttle
        self._seconds = SECONDS[bench.device] * (THOROUGH if thorough else 1.0)
        self._generator = torch.Generator(bench.device).manual_seed(bench.seed_of(1000) % (2**31))
        self._random = random.Random(bench.seed_of(1001))
        first = bench.trial(OWN, 0)
        self._spec = first.spec
        self._mutated, self._may_change = first.mutated, first.may_change
        self._outlier = is_summary(first) and bench.trial(HUGE, 0).sound
        self._allowed = [_allowance(bench, first, i, demanded) for i in range(len(first.reference))]
        del first
        bench.make_room(len(self.sides))
        self._pool = self._draw_pool()

    def run(self) -> Rounds:
        """All rounds. Raises CandidateFailed when the candidate fails, or a timed output is wrong."""
        rounds = Rounds()
        stop = time.monotonic() + self._seconds
        self._warm()
        while len(rounds.candidate) < MOST_ROUNDS:
            state = self._throttle()
            self._round(rounds)
            if self._throttle() != state and rounds.dropped < MOST_ROUNDS // 4:
                self._drop_last(rounds)
            done = len(rounds.candidate)
            if done >= LEAST_ROUNDS and done % 5 == 0:
                speedup = statistics.ratio(rounds.column("reference"), rounds.column("candidate"))
                if statistics.narrow(speedup, WIDTH):
                    break
            if time.monotonic() > stop and done >= 8:
                break
        return rounds

    def hot(self, side: str, calls: int = 10) -> list[Reply]:
        """`calls` timed calls with whatever the caches hold, on a device that is idle when each begins."""
        session = self.sides[side]
        return [session.time(self._spec, 0, cold=False, seed=self._seed())[0] for _ in range(calls)]

    def _draw_pool(self) -> list[list[torch.Tensor]]:
        size = self.bench.input_bytes // 2
        count = max(2, min(POOL[self.bench.device], POOL_BYTES[self.bench.device] // max(size, 1)))
        return [self.bench.problem.inputs(self.bench.seed_of(1100 + i))[1] for i in range(count)]

    def _seed(self) -> int | None:
        return self._random.getrandbits(31) if self.bench.uses_rng else None

    def _fresh_inputs(self, slot: int) -> None:
        """Values never seen before, in `slot`: one draw of the pool with much of another in it. Where outputs sum a lot
        up, one element outweighs the others, so that no call may leave any out."""
        chosen, donor = self._random.sample(range(len(self._pool)), 2)
        for target, other in zip(self._pool[chosen], self._pool[donor], strict=True):
            exchange(target, other, self._generator)
        self._written = self._pool[chosen]
        floating = [t for t in self._written if t.is_floating_point() and t.numel()]
        if not self._outlier or not floating:
            self.bench.write_inputs(self._written, slot)
            return
        which = self._random.choice(floating)
        index, before = put_outlier(which, self._generator, None)
        self.bench.write_inputs(self._written, slot)
        which[index] = before

    def _warm(self) -> None:
        stop = time.monotonic() + WARM_SECONDS[self.bench.device]
        calls = 0
        self._fresh_inputs(0)
        self.bench.synchronize()
        while calls < (3 if self.bench.landing_bytes > LARGE_LANDING else WARM_CALLS) or time.monotonic() < stop:
            for session in self.sides.values():
                session.time(self._spec, 0, cold=True, seed=self._seed())
            calls += 1

    def _round(self, rounds: Rounds) -> None:
        slot = len(rounds.candidate) % 2
        self._fresh_inputs(slot)
        order = ["candidate", "reference", "second"]
        self._random.shuffle(order)
        seed = self._seed()
        landed: dict[str, list[torch.Tensor]] = {}
        replies: dict[str, Reply] = {}
        for side in order:
            if side != "second":
                self.bench.poison_landing(0xFF)
            if self._may_change:
                # The side before has left its own values there.
                self.bench.write_inputs(self._written, slot)
            self.bench.synchronize()
            reply, wall = self.sides[side].time(self._spec, slot, cold=True, seed=seed, give_back=self._mutated)
            replies[side] = reply
            rounds.walls[side].append(wall)
            if side != "second":
                keep = side != order[-1]
                landed[side] = self._landed(reply, keep=keep) + self._changed(slot, keep=keep)
        self._verify(landed)
        rounds.candidate.append(replies["candidate"])
        rounds.reference.append(replies["reference"])
        rounds.second.append(replies["second"])

    def _landed(self, reply: Reply, *, keep: bool) -> list[torch.Tensor]:
        self.bench.synchronize()
        views = [tensor_at(self.bench.arenas["landing"], place.model_dump()) for place in reply.tensors]
        return [v.clone() for v in views] if keep else views

    def _changed(self, slot: int, *, keep: bool) -> list[torch.Tensor]:
        """What the last call has made of the inputs that count as outputs."""
        views = [tensor_at(self.bench.arenas["inputs"], self.bench.slots[slot][i]) for i in self._mutated]
        return [v.clone() for v in views] if keep else views

    def _verify(self, landed: dict[str, list[torch.Tensor]]) -> None:
        """The candidate's timed output against the reference's on the same inputs."""
        pairs = list(zip(landed["candidate"], landed["reference"], strict=False))
        good = len(landed["candidate"]) == len(landed["reference"])
        for i, (mine, theirs) in enumerate(pairs):
            if not good or mine.shape != theirs.shape or mine.dtype != theirs.dtype:
                good = False
                break
            allowed = self._allowed[i]
            if isinstance(allowed, int):
                good = good and int((mine != theirs).sum()) <= allowed
                continue
            found = measure(mine, theirs)
            if self._outlier:
                # Its scale is another one in every round.
                allowed = Limit(
                    max(allowed.rms, 2 * SPECIAL_RELATIVE * found.scale),
                    max(allowed.maximum, 10 * SPECIAL_RELATIVE * found.peak),
                )
            good = good and found.unsound == 0 and found.rms <= allowed.rms
            if good and found.maximum > allowed.maximum:
                # At the edge of two steps both are right. What lies there was looked at when it was checked.
                beyond = wrong_elements(mine, theirs, allowed.maximum)
                good = beyond <= 2 * (MOST_AT_EDGES + mine.numel() // FEW_AT_EDGES)
        if not good:
            finding = observe("time_checked_output_wrong", "right when checked, wrong while it was timed")
            raise CandidateFailed(Verdict.CHEATING, finding)

    def _drop_last(self, rounds: Rounds) -> None:
        for rows in (rounds.candidate, rounds.reference, rounds.second, *rounds.walls.values()):
            rows.pop()
        rounds.dropped += 1


def is_summary(trial: Trial) -> bool:
    """Whether outputs are much smaller than inputs: each element sums so many up that a part of them can stand for all,
    within what honest arithmetic may be off."""
    outputs = sum(t.numel() for t in trial.reference)
    return SUMMARY * outputs <= sum(t.numel() for t in trial.tensors if t.is_floating_point())


def _allowance(bench: Bench, trial: Trial, i: int, demanded: PrecisionClass | None) -> Limit | int:
    """How far output `i` of a timed call may be from the reference's: a limit, or a count of elements of an exact
    one."""
    reference = trial.reference[i]
    if not reference.is_floating_point():
        return 2 * int((reference != trial.oracle[i].to(reference.dtype)).sum()) + 2
    limit, error = bench.limit(trial, i, demanded), trial.errors[i]
    return Limit(1.5 * (limit.rms + error.rms), 2 * (limit.maximum + error.maximum))


def clock_mismatch(rounds: Rounds) -> Finding | None:
    """Whether the worker's clock disagrees with the judge's.

    Both sides go through the same exchange, so what the judge's wall clock has beyond the worker's own time should be
    the same for both. The lower decile is compared, which neighbours on a busy machine move least, and only a gap that
    would change the outcome counts: more than half of the time that the candidate reports. It is no accusation, since
    a busy machine can do the same: the rounds are then timed by the judge's clock.
    """
    reported = float(np.median(rounds.column("candidate")))
    beyond = {
        side: float(np.percentile(np.array(rounds.walls[side]) - rounds.column(side), 10))
        for side in ("candidate", "reference", "second")
    }
    hidden = beyond["candidate"] - max(beyond["reference"], beyond["second"])
    if hidden <= max(0.5 * reported, 200.0):
        return None
    summary = (
        f"reports {reported:.0f} us a call, but at least {hidden:.0f} us more pass by the judge's own clock, "
        "by which it is timed instead"
    )
    return observe(
        "clock_mismatch", summary, severity="warning", reported_us=round(reported, 1), hidden_us=round(hidden, 1)
    )


def side_stream(candidate: list[Reply], reference: list[Reply]) -> Finding | None:
    """Whether work goes on behind the candidate's back: the device is busy long after its stream has finished.

    From hot calls, each begun on an idle device: behind a flush, which the timed stream waits for and a stream of the
    candidate's own does not, such work would end before it is looked for.
    """
    reported = float(np.median([r.us for r in candidate]))
    own, usual = (float(np.median([r.drained_us - r.us for r in side])) for side in (candidate, reference))
    if own - usual <= max(20.0, 0.1 * reported):
        return None
    summary = f"the device goes on working for {own - usual:.0f} us after the timed stream is done"
    return observe("side_stream", summary, reported_us=round(reported, 1), behind_us=round(own - usual, 1))
