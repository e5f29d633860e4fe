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
from tools.judge.client import Reply
from tools.judge.errors import identical
from tools.judge.failures import CandidateFailed
from tools.judge.findings import observe
from tools.judge.fresh import FreshInputs
from tools.judge.inputs import OWN
from tools.judge.machine import Bystanders
from tools.judge.module_state import State
from tools.judge.rounds import SIDES, Clock, Rounds
from tools.judge.rows import LARGE_LANDING, Rows
from tools.judge.session import Session
from tools.judge.timed_outputs import TimedOutputs, changed_inputs, inputs_kept, landed
from tools.types import PrecisionClass, Verdict

WIDTH = 0.01
LEAST_ROUNDS = 20
FEWEST_ROUNDS = 8
"""Even where the time is up."""

MOST_ROUNDS = 400
SECONDS = {"cpu": 1.8, "cuda": 2.5}
THOROUGH = {"cpu": 2.0, "cuda": 4.0}
"""How many times longer the winner is timed."""

WARM_CALLS = 8
"""More than a worker holds back of its memory (tools.worker.placing): no timed call is the first to ask for some."""

WARM_SECONDS = {"cpu": 0.3, "cuda": 0.4}
LOOKED_AT = 0.2
"""In this share of rounds, and in the first, it is looked at what a call has made of its inputs."""

SERIES, SERIES_OF_LARGE = 3, 2

_BY_JUDGE = "paired {} in random order, two processes, the judge's own clock"
METHOD: dict[Clock, dict[str, str]] = {
    "device": {
        "cpu": "paired calls in random order, caches flushed, two processes, monotonic clock",
        "cuda": "paired calls in random order, L2 written then read, two processes, CUDA events",
    },
    "wall": dict.fromkeys(("cpu", "cuda"), _BY_JUDGE.format("calls, the exchange included,")),
    "series": dict.fromkeys(("cpu", "cuda"), _BY_JUDGE.format("rows of calls,")),
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
        self._seconds = SECONDS[bench.device] * (THOROUGH[bench.device] if thorough else 1.0)
        self._random = random.Random(bench.seed_of(1001))
        self._warmed = False
        first = bench.trial(OWN, 0)
        self.spec = first.spec
        self._mutated, self._may_change = first.mutated, first.may_change
        self.outputs = TimedOutputs(bench, demanded)
        del first
        self._fresh = FreshInputs(bench, outlier=self.outputs.outlier)
        # Besides the shared buffers there are two draws at a time, or one and an output.
        bench.make_room(len(SIDES), own=bench.draw_bytes + max(bench.draw_bytes, bench.landing_bytes))
        self._rows = Rows(bench, self._fresh, self.outputs, self.seed, self._mutated)
        self._written: list[torch.Tensor] = []
        self._early: list[torch.Tensor] | None = None
        """The outputs of an early round, which the candidate still holds."""

    def run(self, candidate: Session, clock: Clock = "device", *, least: int = LEAST_ROUNDS) -> Rounds:
        """All rounds, and no fewer than `least` unless the time is up. Raises CandidateFailed when the candidate fails,
        or a timed output is wrong."""
        sides = self._sides(candidate)
        rounds = Rounds(clock=clock, device=self.bench.device)
        stop = time.monotonic() + self._seconds
        self._warm(sides)
        bystanders = Bystanders([session.worker.child.pid for session in sides.values()])
        calls = self._rows.calls(*([reply] for reply in self._usual(sides))) if clock == "series" else 0
        # Where outputs are large there may be no room for two.
        holds = clock == "device" and self.bench.landing_bytes <= LARGE_LANDING
        held_at = self._random.randrange(FEWEST_ROUNDS) if holds else -1
        while len(rounds) < MOST_ROUNDS:
            state = self._throttle()
            if clock == "series":
                for side, row in self._rows.time(sides, calls).items():
                    rounds.walls[side].append(row.each)
            else:
                self._round(sides, rounds, hold=self._early is None and len(rounds) == held_at)
            if self._throttle() != state and rounds.dropped < MOST_ROUNDS // 4:
                rounds.drop_last()
            done = len(rounds)
            if done >= least and done % 5 == 0:
                speedup = statistics.ratio(rounds.times("reference"), rounds.times("candidate"))
                if statistics.narrow(speedup, WIDTH):
                    break
            if time.monotonic() > stop and done >= FEWEST_ROUNDS:
                break
        rounds.bystanders = bystanders.share()
        self._outlasts(candidate)
        return rounds.charged()

    def hot(self, session: Session, calls: int = 10) -> list[Reply]:
        """`calls` timed calls with whatever the caches hold, on a device that is idle when each begins."""
        self.fresh_inputs(0)
        self.bench.synchronize()
        return [session.timed.time(self.spec, 0, cold=False, seed=self.seed(), land=False)[0] for _ in range(calls)]

    def series(self, candidate: Session, rounds: Rounds) -> tuple[float, float]:
        """Least microseconds of a call in a row of them by the judge's own clock, the candidate's and the
        reference's."""
        calls = self._rows.calls(rounds.replies["candidate"], rounds.replies["reference"])
        self._written = []
        pair = {"candidate": candidate, "reference": self._references[0]}
        least = self._rows.least(pair, calls, SERIES if self.bench.landing_bytes <= LARGE_LANDING else SERIES_OF_LARGE)
        return least["candidate"], least["reference"]

    def fresh_inputs(self, slot: int) -> None:
        """Values never seen before, in `slot`."""
        self._written = []  # there may be no room for another
        self._written = self._fresh.next()
        self.bench.write_inputs(self._written, slot)

    def verify(self, candidate: list[torch.Tensor], reference: list[torch.Tensor], seed: int | None) -> None:
        """Raises CandidateFailed where outputs on the inputs written last are wrong."""
        self.outputs.verify(candidate, reference, lambda: self._written, seed, outlier=self._fresh.has_outlier)

    def seed(self) -> int | None:
        """A fresh one for a forward that draws random numbers."""
        return self._random.getrandbits(31) if self.bench.uses_rng else None

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
                session.timed.time(self.spec, 0, cold=True, seed=self.seed())
            calls += 1

    def _round(self, sides: dict[str, Session], rounds: Rounds, *, hold: bool) -> None:
        slot = len(rounds) % 2
        self.fresh_inputs(slot)
        given = self._written
        order = self._random.sample(SIDES, len(SIDES))
        seed = self.seed()
        looked_at = hold or not len(rounds) or self._random.random() < LOOKED_AT
        found: dict[str, list[torch.Tensor]] = {}
        states: dict[str, State] = {}
        replies: dict[str, Reply] = {}
        walls: dict[str, float] = {}
        for side in order:
            if side == "candidate":
                self.bench.poison_landing(0xFF)
            behind = "candidate" in walls
            if self._may_change or behind:
                # The side before has left its own values there, or may have: the candidate can write to the buffers.
                self.bench.write_inputs(given, slot)
            if behind and self.bench.problem.changing:
                self.bench.write_weights(self.bench.model)
            self.bench.synchronize()
            replies[side], walls[side] = sides[side].timed.time(
                self.spec, slot, cold=True, seed=seed, give_back=self._mutated, land=side != "second"
            )
            if side != "second":
                # What has landed is lost when the other of the two lands, or a state does.
                outputs = landed(self.bench, replies[side], keep=not found or bool(self.bench.problem.changing))
                found[side] = outputs + changed_inputs(self.bench, self._mutated, slot, keep=side != order[-1])
                states[side], more = sides[side].timed.accounted(sides[side].changed_state)
                replies[side] = replies[side].model_copy(update={"land_us": replies[side].land_us + more})
            if side == "candidate" and looked_at:
                # Now: for whoever comes next inputs are written anew, on the CPU to where this one has them.
                self._look_at_inputs(sides[side], replies[side], given, found[side], 1 - slot, hold=hold)
        self.outputs.verify_form(replies["candidate"], replies["reference"])
        self.verify(found["candidate"], found["reference"], seed)
        self.outputs.verify_state(states["candidate"], states["reference"], outlier=self._fresh.has_outlier)
        rounds.add(replies, walls)

    def _look_at_inputs(
        self,
        candidate: Session,
        reply: Reply,
        given: list[torch.Tensor],
        outputs: list[torch.Tensor],
        slot: int,
        *,
        hold: bool,
    ) -> None:
        # A view of an input lasts as long as that: the judge itself writes there.
        hold = hold and not any(place.aliases_input for place in reply.tensors)
        if hold:
            self._early = [t.clone() for t in outputs[: len(reply.tensors)]]
        inputs_kept(candidate, given, self._may_change, slot, hold=hold)

    def _outlasts(self, candidate: Session) -> None:
        """Raises CandidateFailed where the outputs of an early call, which none knew to be looked at again, have not
        survived those that came after it."""
        if self._early is None:
            return
        first, self._early = self._early, None
        held = landed(self.bench, candidate.timed.land_held(), keep=False)
        if len(first) != len(held) or not all(map(identical, first, held)):
            summary = "when timed, a later call overwrites the output of an earlier one"
            raise CandidateFailed(Verdict.CHEATING, observe("aliases_previous_output", summary))

    def _usual(self, sides: dict[str, Session]) -> list[Reply]:
        """A cold call of each program, to see what a call takes."""
        return [session.timed.time(self.spec, 0, cold=True, seed=self.seed())[0] for session in sides.values()]
