"""Timing: candidate and reference in two processes of the same kind, one call each in turn in random order.

Every round puts new values at another address, times the candidate and two processes of the reference, and compares the
candidate's output with the reference's. The second process gives the null spread: how far two processes that run the
same code lie apart, by the luck of their memory and of the scheduler. A call is timed by the worker's device clock,
cold caches, and the whole exchange by the judge's own clock; calls in a row are timed by the judge's own clock alone,
precise to a microsecond since the exchange is shared by all of them. The three must tell the same story. Rounds go on
until the 95% interval of the ratio lies within 1%, or the time is up.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable

import torch

from tools.judge import statistics
from tools.judge.bench import Bench
from tools.judge.client import CandidateFailed, Reply
from tools.judge.errors import identical
from tools.judge.findings import observe
from tools.judge.inputs import OWN, put_outlier
from tools.judge.mixing import exchange
from tools.judge.module_state import State
from tools.judge.rounds import SIDES, Clock, Rounds
from tools.judge.session import Session
from tools.judge.timed_outputs import TimedOutputs, inputs_kept
from tools.types import PrecisionClass, Verdict
from tools.worker.arena import tensor_at

WIDTH = 0.01
LEAST_ROUNDS = 20
FEWEST_ROUNDS = 8
"""Even where the time is up."""

MOST_ROUNDS = 400
SECONDS = {"cpu": 2.5, "cuda": 2.5}
THOROUGH = 4.0
"""How many times longer the winner is timed."""

WARM_CALLS = 8
"""More than a worker holds back of its memory (tools.worker.placing): no timed call is the first to ask for some."""

WARM_SECONDS = {"cpu": 0.3, "cuda": 0.4}
LARGE_LANDING = 1 << 30
POOL = {"cpu": 4, "cuda": 3}
POOL_BYTES = {"cpu": 1 << 30, "cuda": 16 << 30}
SERIES_US = {"cpu": 20_000.0, "cuda": 10_000.0}
"""What the calls of a series take together, about."""

OUTLIER_SHARE = 0.5
LOOKED_AT = 0.2
"""In this share of rounds, and in the first, it is looked at what a call has made of its inputs."""

SERIES = 3
SERIES_CALLS = (4, 64)
LAUNCH_US = 5_000.0
"""So long waits the device before a series begins: its calls queue up, and the host's time does not count."""

_BY_JUDGE = "paired {} in random order, two processes, the judge's own clock"
METHOD: dict[Clock, dict[str, str]] = {
    "device": {
        "cpu": "paired calls in random order, caches flushed, two processes, monotonic clock",
        "cuda": "paired calls in random order, L2 written then read, two processes, CUDA events",
    },
    "wall": dict.fromkeys(("cpu", "cuda"), _BY_JUDGE.format("calls, the exchange included,")),
    "series": dict.fromkeys(("cpu", "cuda"), _BY_JUDGE.format("rows of calls, caches warm,")),
}


class Timer:
    """Times one loaded program after the other against the loaded reference on a bench."""

    def __init__(
        self,
        bench: Bench,
        references: tuple[Session, Session],
        demanded: PrecisionClass | None,
        throttle: Callable[[], str],
        *,
        thorough: bool = False,
    ) -> None:
        self.bench = bench
        self._references = references
        self._throttle = throttle
        self._seconds = SECONDS[bench.device] * (THOROUGH if thorough else 1.0)
        self._generator = torch.Generator(bench.device).manual_seed(bench.seed_of(1000) % (2**31))
        self._random = random.Random(bench.seed_of(1001))
        self._warmed = False
        first = bench.trial(OWN, 0)
        self.spec = first.spec
        self._mutated, self._may_change = first.mutated, first.may_change
        self.outputs = TimedOutputs(bench, demanded)
        del first
        size = bench.input_bytes // 2
        draws = 2 if bench.tight else max(2, min(POOL[bench.device], POOL_BYTES[bench.device] // max(size, 1)))
        # Besides the pool an output is kept, and one more draw is in the making.
        bench.make_room(len(SIDES), own=(draws + 1) * size + bench.landing_bytes)
        self._outlier: tuple[torch.Tensor, tuple[int, ...], float] | None = None
        self._pool = [bench.problem.inputs(bench.seed_of(1100 + i))[1] for i in range(draws)]

    def run(self, candidate: Session, clock: Clock = "device", *, least: int = LEAST_ROUNDS) -> Rounds:
        """All rounds, and no fewer than `least` unless the time is up. Raises CandidateFailed when the candidate fails,
        or a timed output is wrong."""
        sides = self._sides(candidate)
        rounds = Rounds(clock=clock)
        stop = time.monotonic() + self._seconds
        self._warm(sides)
        calls = self._series_calls(self._usual(sides)) if clock == "series" else 0
        while len(rounds) < MOST_ROUNDS:
            state = self._throttle()
            if clock == "series":
                self._series_round(sides, rounds, calls)
            else:
                self._round(sides, rounds)
            if self._throttle() != state and rounds.dropped < MOST_ROUNDS // 4:
                rounds.drop_last()
            done = len(rounds)
            if done >= least and done % 5 == 0:
                speedup = statistics.ratio(rounds.times("reference"), rounds.times("candidate"))
                if statistics.narrow(speedup, WIDTH):
                    break
            if time.monotonic() > stop and done >= FEWEST_ROUNDS:
                break
        if clock == "device":
            self._outlasts(candidate)
        return rounds.charged()

    def hot(self, session: Session, calls: int = 10) -> list[Reply]:
        """`calls` timed calls with whatever the caches hold, on a device that is idle when each begins."""
        return [session.time(self.spec, 0, cold=False, seed=self.seed(), land=False)[0] for _ in range(calls)]

    def series(self, candidate: Session, rounds: Rounds) -> tuple[float, float] | None:
        """Least microseconds of a call in a row of them by the judge's own clock, the candidate's and the reference's;
        None where each call changes what the next one gets."""
        if self._may_change:
            return None
        calls = self._series_calls([*rounds.replies["candidate"], *rounds.replies["reference"]])
        pair = candidate, self._references[0]
        idle = [min(self._series(one, 0, calls=0, place=False) for _ in range(SERIES)) for one in pair]
        taken = [[self._series(one, 0, calls, place=again == 0) for one in pair] for again in range(SERIES)]
        mine, theirs = (
            max(min(column) - i, 0.0) / calls for column, i in zip(zip(*taken, strict=True), idle, strict=True)
        )
        return mine, theirs

    def fresh_inputs(self, slot: int) -> None:
        """Values never seen before, in `slot`: one draw of the pool with much of another in it. Where outputs sum a lot
        up, one element outweighs the others in every other round, so that no call may leave any out. In the others
        outputs are held to the precision of a check, which such an element would hide the lack of."""
        if self._outlier is not None:
            tensor, index, before = self._outlier
            tensor[index] = before
            self._outlier = None
        chosen, donor = self._random.sample(range(len(self._pool)), 2)
        for target, other in zip(self._pool[chosen], self._pool[donor], strict=True):
            exchange(target, other, self._random)
        self._written = self._pool[chosen]
        floating = [t for t in self._written if t.is_floating_point() and t.numel()]
        if self.outputs.outlier and floating and self._random.random() < OUTLIER_SHARE:
            which = self._random.choice(floating)
            self._outlier = which, *put_outlier(which, self._generator, None)
        self.bench.write_inputs(self._written, slot)

    @property
    def has_outlier(self) -> bool:
        """Whether the inputs written last hold one."""
        return self._outlier is not None

    def seed(self) -> int | None:
        """A fresh one for a forward that draws random numbers."""
        return self._random.getrandbits(31) if self.bench.uses_rng else None

    def landed(self, reply: Reply, *, keep: bool) -> list[torch.Tensor]:
        """The outputs of a reply; only with `keep` do they outlast the next call."""
        self.bench.synchronize()
        views = [tensor_at(self.bench.arenas["landing"], place.model_dump()) for place in reply.tensors]
        return [v.clone() for v in views] if keep else views

    def _sides(self, candidate: Session) -> dict[str, Session]:
        return dict(zip(SIDES, (candidate, *self._references), strict=True))

    def _warm(self, sides: dict[str, Session]) -> None:
        # Once the device is warm only a new process is not.
        stop = time.monotonic() + WARM_SECONDS[self.bench.device] / (4 if self._warmed else 1)
        self._warmed, calls = True, 0
        self.fresh_inputs(0)
        self.bench.synchronize()
        while calls < (3 if self.bench.landing_bytes > LARGE_LANDING else WARM_CALLS) or time.monotonic() < stop:
            for session in sides.values():
                session.time(self.spec, 0, cold=True, seed=self.seed())
            calls += 1

    def _round(self, sides: dict[str, Session], rounds: Rounds) -> None:
        slot = len(rounds) % 2
        self.fresh_inputs(slot)
        order = self._random.sample(SIDES, len(SIDES))
        seed = self.seed()
        found: dict[str, list[torch.Tensor]] = {}
        states: dict[str, State] = {}
        replies: dict[str, Reply] = {}
        walls: dict[str, float] = {}
        for side in order:
            if side == "candidate":
                self.bench.poison_landing(0xFF)
            behind = side == "reference" and "candidate" in found
            if self._may_change or behind:
                # The side before has left its own values there, or may have: the candidate can write to the buffers.
                self.bench.write_inputs(self._written, slot)
            if behind and self.bench.problem.changing:
                self.bench.write_weights(self.bench.model)
            self.bench.synchronize()
            replies[side], walls[side] = sides[side].time(
                self.spec, slot, cold=True, seed=seed, give_back=self._mutated, land=side != "second"
            )
            if side != "second":
                # What has landed is lost when the other of the two lands, or a state does.
                landed = self.landed(replies[side], keep=not found or bool(self.bench.problem.changing))
                found[side] = landed + self._changed(slot, keep=side != order[-1])
                states[side] = sides[side].changed_state()
        self.outputs.verify(found["candidate"], found["reference"], outlier=self.has_outlier)
        if not len(rounds) or self._random.random() < LOOKED_AT:
            inputs_kept(sides["candidate"], self._written, self._may_change, 1 - slot)
        self.outputs.verify_state(states["candidate"], states["reference"], outlier=self.has_outlier)
        rounds.add(replies, walls)

    def _outlasts(self, candidate: Session) -> None:
        """Raises CandidateFailed where the outputs of a timed call, which none knows to be the last, do not survive
        another one."""
        if self.bench.landing_bytes > LARGE_LANDING:
            return  # there may be no room for two
        self.fresh_inputs(0)
        self.bench.synchronize()
        seed = self.seed()
        first = self.landed(candidate.time(self.spec, 0, cold=True, seed=seed)[0], keep=True)
        inputs_kept(candidate, self._written, self._may_change, 1, keep=True)
        self.fresh_inputs(1)
        self.bench.synchronize()
        candidate.time(self.spec, 1, cold=True, seed=self.seed(), land=False)
        held = self.landed(candidate.land_kept(), keep=False)
        if len(first) != len(held) or not all(map(identical, first, held)):
            finding = observe("aliases_previous_output", "when timed, a call overwrites the output of the one before")
            raise CandidateFailed(Verdict.CHEATING, finding)

    def _changed(self, slot: int, *, keep: bool) -> list[torch.Tensor]:
        """What the last call has made of the inputs that count as outputs."""
        views = [tensor_at(self.bench.arenas["inputs"], self.bench.slots[slot][i]) for i in self._mutated]
        return [v.clone() for v in views] if keep else views

    def _usual(self, sides: dict[str, Session]) -> list[Reply]:
        """A cold call of each program, to see what a call takes."""
        return [session.time(self.spec, 0, cold=True, seed=self.seed())[0] for session in sides.values()]

    def _series_calls(self, usual: list[Reply]) -> int:
        """How many calls make a series: enough for the exchange not to count, and few enough to be launched in time."""
        slowest, host = max(reply.us for reply in usual), max(reply.host_us for reply in usual)
        most = SERIES_US[self.bench.device] / max(slowest, 1.0)
        if self.bench.device == "cuda":
            most = min(most, LAUNCH_US / 2 / max(host, 1.0))
        return int(min(max(most, SERIES_CALLS[0]), SERIES_CALLS[1]))

    def _series(self, session: Session, slot: int, calls: int, *, seed: int | None = None, **how: bool) -> float:
        seed = self.seed() if seed is None else seed
        return session.series(self.spec, slot, calls, seed=seed, wait_us=LAUNCH_US, **how)

    def _series_round(self, sides: dict[str, Session], rounds: Rounds, calls: int) -> None:
        slot = len(rounds) % 2
        self.fresh_inputs(slot)
        order = self._random.sample(SIDES, len(SIDES))
        seed = self.seed()
        found: dict[str, list[torch.Tensor]] = {}
        walls: dict[str, float] = {}
        for side in order:
            self.bench.synchronize()
            idle = self._series(sides[side], slot, 0, place=False)
            taken = self._series(sides[side], slot, calls, seed=seed, keep=side != "second")
            walls[side] = max(taken - idle, 0.01) / calls
            if side != "second":
                found[side] = self.landed(sides[side].land_kept(), keep=not found)
        self.outputs.verify(found["candidate"], found["reference"], outlier=self.has_outlier)
        for side in SIDES:
            rounds.walls[side].append(walls[side])
