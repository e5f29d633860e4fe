"""Calls in a row, timed by the judge's own clock alone: precise to a microsecond, since a row shares one exchange.

Before each call some values of the inputs change, in all programs alike, and the outputs of one of the calls, which
nobody knows beforehand, are held against the reference's: what was computed for one call serves no other. What changing
them takes is measured by a row in which nothing is called, and left out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch

from tools.judge.rounds import BESIDE_SHARE, BESIDE_US
from tools.judge.timed_outputs import changed_inputs, landed
from tools.worker.altering import Alterations

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from tools.judge.bench import Bench
    from tools.judge.client import Reply
    from tools.judge.fresh import FreshInputs
    from tools.judge.session import Session
    from tools.judge.timed_outputs import TimedOutputs

ROW_US = {"cpu": 20_000.0, "cuda": 10_000.0}
"""What the calls of a row take together, about."""

CALLS = (4, 64)
KEPT_BYTES = {"cpu": 256 << 20, "cuda": 1 << 30}
"""So large may the outputs be that are kept of a row; those of one call always are."""

ALTERING_US = 60.0
"""So much of the host's time is set aside for having one input changed."""

LAUNCHED = 1.5
"""The device waits, before a row begins, so many times as long as launching its calls takes: they queue up, and the
host's time does not count."""

MOST_WAIT_US = 50_000.0

COMPARED = ("candidate", "reference")
LARGE_LANDING = 1 << 30
"""So large outputs are carried away once all rows are done."""


@dataclass(frozen=True)
class Row:
    """Microseconds that a row of `calls` has taken, and one in which nothing was called."""

    calls: int
    taken: float
    idle: float

    @property
    def each(self) -> float:
        """Microseconds of a call."""
        return max(self.taken - self.idle, 0.01) / self.calls


class Rows:
    """Rows of calls on one bench."""

    def __init__(
        self,
        bench: Bench,
        fresh: FreshInputs,
        outputs: TimedOutputs,
        seed: Callable[[], int | None],
        mutated: Sequence[int],
        may_change: Sequence[int],
    ) -> None:
        self._bench, self._fresh, self._outputs, self._seed = bench, fresh, outputs, seed
        self._mutated, self._anew = mutated, bool(may_change)
        self._wait_us = MOST_WAIT_US
        self._random = random.Random(bench.seed_of(1003))

    def calls(self, *usual: list[Reply]) -> int:
        """How many make a row, by what usual calls of each program have taken: enough for the exchange not to count."""
        slowest, host = (
            max(float(np.median([getattr(reply, name) for reply in replies])) for replies in usual)
            for name in ("us", "host_us")
        )
        calls = int(min(max(ROW_US[self._bench.device] / max(slowest, 1.0), CALLS[0]), CALLS[1]))
        launching = calls * (host + ALTERING_US * max(len(self._fresh.loose), 1))
        self._wait_us = min(LAUNCHED * launching, MOST_WAIT_US)
        return calls

    def least(self, sides: dict[str, Session], calls: int, looks: int) -> dict[str, float]:
        """Least microseconds of a call in so many rows of `calls`, by side. Raises CandidateFailed where an output is
        wrong.

        Rows with calls and rows without are each taken at their least: of differences the least would be the one that
        a neighbour has disturbed most where nothing is called.
        """
        rows = [self.time(sides, calls) for _ in range(looks)]
        return {
            side: max(min(row[side].taken for row in rows) - min(row[side].idle for row in rows), 0.01) / calls
            for side in sides
        }

    def time(self, sides: dict[str, Session], calls: int) -> dict[str, Row]:
        """One row of calls by side. Raises CandidateFailed where an output is wrong."""
        bench, two = self._bench, self._fresh.two()
        alter_seed, seed = self._random.getrandbits(31), self._seed()
        # What may lie in the inputs themselves is gone with the next call.
        kept = 1 if self._anew else min(calls, max(1, KEPT_BYTES[bench.device] // max(bench.landing_bytes, 1)))
        back = self._random.randrange(kept)
        rows: dict[str, Row] = {}
        found: dict[str, tuple[Reply, list[torch.Tensor]]] = {}
        behind: dict[str, float] = {}
        large = bench.landing_bytes > LARGE_LANDING
        pair = two()
        for side in self._random.sample(list(sides), len(sides)):
            idle = self._row(sides[side], pair, calls, alter_seed, seed, 0, forward=False)
            taken = self._row(sides[side], pair, calls, alter_seed, seed, kept if side in COMPARED else 0)
            rows[side] = Row(calls, taken, idle)
            if side in COMPARED and not large:
                # Inputs that are outputs are overwritten by the next side's.
                land = partial(self._landed, sides[side], back, keep=not found or bool(self._mutated))
                found[side], behind[side] = sides[side].timed.accounted(land)
        del pair  # there may be no room for it beside two outputs
        if large:
            found = {side: self._landed(sides[side], back, keep=side != COMPARED[-1]) for side in COMPARED}
        else:
            late = self._late(behind["candidate"], behind["reference"], calls)
            rows["candidate"] = replace(rows["candidate"], taken=rows["candidate"].taken + late)
        # Where nothing is called there is no more to do for one than for another.
        idle = min(row.idle for row in rows.values())
        rows = {side: replace(row, idle=idle) for side, row in rows.items()}

        def given() -> list[torch.Tensor]:
            first, second = two()
            changes = Alterations(first, second, self._fresh.loose, alter_seed)
            for _ in range(calls - back):
                changes.next()
            return first

        (mine, outputs), (theirs, expected) = (found[side] for side in COMPARED)
        self._outputs.verify_form(mine, theirs)
        self._outputs.verify(outputs, expected, given, seed)
        return rows

    def _late(self, mine: float, theirs: float, calls: int) -> float:
        """Microseconds that a row of calls owes for what carrying one output away takes longer than the reference's.
        What the row has not waited for is waited for then; and what one answer is computed in only then, each of the
        calls would have taken."""
        late, device = max(mine - theirs, 0.0), self._bench.device
        return late * calls if late > BESIDE_SHARE[device] * theirs + BESIDE_US[device] else late

    def _landed(self, session: Session, back: int, *, keep: bool) -> tuple[Reply, list[torch.Tensor]]:
        """What was returned by a kept call, and its outputs with the inputs that count as such."""
        reply = session.timed.land_row(back)
        outputs = landed(self._bench, reply, keep=keep)
        if not self._mutated:
            return reply, outputs
        session.timed.changed_inputs(0)
        return reply, outputs + changed_inputs(self._bench, self._mutated, 0, keep=keep)

    def _row(
        self,
        session: Session,
        pair: tuple[list[torch.Tensor], list[torch.Tensor]],
        calls: int,
        alter_seed: int,
        seed: int | None,
        keep: int,
        *,
        forward: bool = True,
    ) -> float:
        for slot, draw in enumerate(pair):
            self._bench.write_inputs(draw, slot)
        self._bench.synchronize()
        return session.timed.row(
            self._fresh.spec,
            0,
            calls,
            alter=self._fresh.loose,
            alter_seed=alter_seed,
            seed=seed,
            wait_us=self._wait_us,
            anew=self._anew,
            forward=forward,
            keep=keep,
        )
