"""Calls in a row, timed by the judge's own clock alone: precise to a microsecond, since a row shares one exchange.

Each call has inputs of its own, drawn for it, and the outputs of one, which nobody knows beforehand, are held against
the reference's: what was computed for one call serves no other. The inputs come when the row begins. On the CPU a
process stands still until then; on CUDA all calls are launched by then, on inputs that nobody can read yet. What the
exchange itself takes is measured by rows in which nothing is called, and left out.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from tools.judge.caches import caches
from tools.judge.rounds import BESIDE_SHARE
from tools.judge.slots import MOST_IN_ROW
from tools.judge.timed_calls import QUEUE_SECONDS
from tools.judge.timed_outputs import changed_inputs, landed
from tools.worker.masking import new_pad, write_masked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import torch

    from tools.judge.bench import Bench
    from tools.judge.client import Reply
    from tools.judge.fresh import FreshInputs
    from tools.judge.session import Session
    from tools.judge.timed_outputs import TimedOutputs

ROW_US = {"cpu": 20_000.0, "cuda": 10_000.0}
"""What the calls of a row take together, about."""

UNMASKING_US = 60.0
"""So much of the host's time is set aside for having one input unmasked."""

CARRIED = 8
"""So many outputs of a row are carried away, where there are as many: which of them is looked at nobody knows."""

LATE_US = {"cpu": 15.0, "cuda": 30.0}
"""So much longer than the reference's may carrying one of them away take, and by a share of it (BESIDE_SHARE)."""

COMPARED = ("candidate", "reference")
LARGE_LANDING = 1 << 30
"""So large outputs are carried away once all rows are done."""


@dataclass(frozen=True)
class Row:
    """Microseconds that a row of `calls` has taken, one in which nothing was called, and carrying each of some outputs
    away; `late` is what the row owes for that."""

    calls: int
    taken: float
    idle: float
    carrying: list[float]
    late: float = 0.0

    @property
    def each(self) -> float:
        """Microseconds of a call."""
        return max(self.taken + self.late - self.idle, 0.01) / self.calls


class Rows:
    """Rows of calls on one bench."""

    def __init__(
        self,
        bench: Bench,
        fresh: FreshInputs,
        outputs: TimedOutputs,
        seed: Callable[[], int | None],
        mutated: Sequence[int],
    ) -> None:
        self._bench, self._fresh, self._outputs, self._seed = bench, fresh, outputs, seed
        self._mutated = mutated
        self._random = random.Random(bench.seed_of(1003))

    def calls(self, *usual: list[Reply]) -> int:
        """How many make a row, by what usual calls of each program have taken: enough for the exchange not to count,
        and no more than there is room for, and time to draw inputs and to launch them."""
        slowest, host = (
            max(float(np.median([getattr(reply, name) for reply in replies])) for replies in usual)
            for name in ("us", "host_us")
        )
        most = min(MOST_IN_ROW, len(self._bench.slots) - 1, self._fresh.most)
        if self._bench.device == "cuda":
            launching = host + UNMASKING_US * len(self._bench.slots[0])
            most = min(most, int(0.8e6 * QUEUE_SECONDS / max(launching, 1.0)))
        return max(1, min(most, round(ROW_US[self._bench.device] / max(slowest, 1.0))))

    def least(self, sides: dict[str, Session], calls: int, looks: int) -> dict[str, float]:
        """Least microseconds of a call in so many rows of `calls`, by side. Raises CandidateFailed where an output is
        wrong.

        Rows with calls and rows without are each taken at their least: of differences the least would be the one that
        a neighbour has disturbed most where nothing is called. What carrying outputs away takes is told by all of them.
        """
        rows = [self.time(sides, calls) for _ in range(looks)]
        idle = min(row.idle for found in rows for row in found.values())
        late = self._late(*([us for row in rows for us in row[side].carrying] for side in COMPARED), calls=calls)
        least = {side: min(row[side].taken for row in rows) for side in sides}
        least[COMPARED[0]] += late
        return {side: max(taken - idle, 0.01) / calls for side, taken in least.items()}

    def time(self, sides: dict[str, Session], calls: int) -> dict[str, Row]:
        """One row of calls by side. Raises CandidateFailed where an output is wrong."""
        draws, seed = self._fresh.several(calls), self._seed()
        carried = self._random.sample(range(calls), min(calls, CARRIED))
        looked_at = self._random.choice(carried)
        large = self._bench.landing_bytes > LARGE_LANDING
        found: dict[str, tuple[Reply, list[torch.Tensor]]] = {}
        taken: dict[str, float] = {}
        carrying: dict[str, list[float]] = {}
        # What the reference is given lies open: the candidate could read it, and comes first.
        order = sorted(sides, key=lambda side: side != COMPARED[0])
        idle: list[float] = []
        for side in order:
            # Of every side, in the same place: what an exchange takes may hang on what came before it.
            idle.append(self._idle(sides[side], calls, seed))
            taken[side] = self._row(sides[side], draws, calls, seed, keep=side in COMPARED)
            if side in COMPARED and not large:
                # Inputs that are outputs are overwritten by the next side's.
                keep = not found or bool(self._mutated)
                found[side], carrying[side] = self._landed(sides[side], carried, looked_at, keep=keep)
        if large:
            found = {side: self._landed(sides[side], [0], 0, keep=side != COMPARED[-1])[0] for side in COMPARED}
        late = self._late(*(carrying.get(side, []) for side in COMPARED), calls=calls)
        (mine, outputs), (theirs, expected) = (found[side] for side in COMPARED)
        self._outputs.verify_form(mine, theirs)
        self._outputs.verify(outputs, expected, lambda: draws(looked_at), seed, outlier=looked_at in draws.outliers)
        return {
            side: Row(calls, us, min(idle), carrying.get(side, []), late if side == COMPARED[0] else 0.0)
            for side, us in taken.items()
        }

    def _late(self, mine: list[float], theirs: list[float], *, calls: int) -> float:
        """Microseconds that a row of calls owes for what carrying one output away takes longer than the reference's, by
        the medians of some. What the row has not waited for is waited for then; and what one answer is computed in only
        then, each of the calls would have taken."""
        if not mine or not theirs:
            return 0.0
        usual, device = float(np.median(theirs)), self._bench.device
        late = float(np.median(mine)) - usual
        return late * calls if late > BESIDE_SHARE[device] * usual + LATE_US[device] else 0.0

    def _landed(
        self, session: Session, carried: Sequence[int], looked_at: int, *, keep: bool
    ) -> tuple[tuple[Reply, list[torch.Tensor]], list[float]]:
        """What was returned by one of the calls that are carried away, one after the other, and its outputs with the
        inputs that count as such; and how long carrying each away took, without what keeping it takes us."""
        times, found = list[float](), None
        for call in carried:
            give_back = self._mutated if call == looked_at else ()
            reply, taken = session.timed.accounted(partial(session.timed.land_row, call, give_back))
            times.append(taken)
            if call == looked_at:
                lasts = keep or call != carried[-1]
                outputs = landed(self._bench, reply, keep=lasts)
                found = reply, outputs + changed_inputs(self._bench, self._mutated, 0, keep=lasts)
        assert found is not None
        return found, times

    def _idle(self, session: Session, calls: int, seed: int | None) -> float:
        """Microseconds of a row in which nothing is called, on whatever is left there: of the row to come nothing must
        be known from it."""
        bench = self._bench
        pad = new_pad(bench.arenas["inputs"], bench.slots[0]) if bench.device == "cuda" else None
        return session.timed.row(self._fresh.spec, calls, pad, seed=seed, forward=False)

    def _row(
        self, session: Session, draws: Callable[[int], list[torch.Tensor]], calls: int, seed: int | None, *, keep: bool
    ) -> float:
        bench, pad = self._bench, None
        for i in range(calls):
            if bench.device == "cuda":
                pad = write_masked(bench.arenas["inputs"], bench.slots[i + 1], list(draws(i)), pad)
            else:
                bench.write_inputs(draws(i), i + 1)
        bench.synchronize()
        if pad is None:
            caches("cpu").empty()  # a call by itself finds them empty
        return session.timed.row(self._fresh.spec, calls, pad, seed=seed, keep=keep)
