"""Samples of a timing: one row a round, of the candidate and of the reference in two processes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from tools.judge import statistics
from tools.judge.client import Reply

SIDES = ("candidate", "reference", "second")
Clock = Literal["device", "wall", "series"]
"""Whose word a timing is: the worker's device clock, call by call; the judge's own clock over each whole exchange; the
judge's own clock over many calls in a row."""


BESIDE_SHARE = {"cpu": 0.15, "cuda": 0.05}
BESIDE_US = {"cpu": 30.0, "cuda": 100.0}
"""By so much, and so many microseconds, a candidate may take longer than the reference to be given its inputs and to
have its outputs carried away, where no work is done, and by a share of what its calls take. On the CPU these are times
of threads, on CUDA exchanges by the judge's clock, the emptying of caches with them: on an H200 the medians of six
honest kernels were up to 88 us longer, and 195 us for one of 15 ms."""

EXCHANGE_SHARE = 0.05
EXCHANGE_US = {"cpu": 60.0, "cuda": 100.0}
"""So much longer than the reference's may the exchanges with a program take beyond its calls: by a share of what it
reports, and by this much. Those of six honest kernels were up to 46 us longer on an H200, and 108 us for one of
15 ms."""


def _each_side() -> dict[str, list[float]]:
    return {side: [] for side in SIDES}


@dataclass
class Rounds:
    """Times in microseconds. `replies` hold what the worker says of each call and are empty where series were timed;
    `walls` are by the judge's own clock: of the whole exchange, or of one call of a series."""

    replies: dict[str, list[Reply]] = field(default_factory=lambda: {side: [] for side in SIDES})
    walls: dict[str, list[float]] = field(default_factory=_each_side)
    clock: Clock = "device"
    dropped: int = 0
    device: str = "cpu"
    charge: float = 0.0
    """Microseconds that were added to each of the candidate's calls."""

    bystanders: float = 0.0
    """The share of the machine's processors that other programs took meanwhile."""

    def __len__(self) -> int:
        return len(self.walls["candidate"])

    def add(self, replies: dict[str, Reply], walls: dict[str, float]) -> None:
        """One round."""
        for side in SIDES:
            self.replies[side].append(replies[side])
            self.walls[side].append(walls[side])

    def drop_last(self) -> None:
        """Forget the last round: something else than the programs has changed in it."""
        for rows in (*self.replies.values(), *self.walls.values()):
            rows.pop()
        self.dropped += 1

    def by_wall(self) -> Rounds:
        """The same rounds timed by the judge's own clock, exchange included, which no candidate can reach."""
        return replace(self, clock="wall")

    @property
    def before(self) -> float:
        """Microseconds by which being given inputs takes longer than it should: where code of the candidate's runs then
        (something dies, a signal comes), it may be at work already."""
        return self._more(lambda side: self.column(side, "place_us"), BESIDE_US[self.device])

    @property
    def behind(self) -> float:
        """Microseconds by which carrying a call's outputs away takes longer than it should: what is computed only when
        somebody looks at it shows there."""
        return self._more(self._landing, BESIDE_US[self.device])

    @property
    def beside(self) -> float:
        """Microseconds by which all that is not a call takes longer than it should: who does its work now here and now
        there shows in neither alone."""
        leeway = BESIDE_US[self.device] + EXCHANGE_US[self.device]
        found = self._more(lambda side: self.column(side, "place_us") + self._landing(side) + self.beyond(side), leeway)
        return max(found, self.before + self.behind)

    def beyond(self, side: str) -> statistics.Samples:
        """Microseconds by the judge's clock of each exchange in which a call is timed that the worker's clock does not
        account for."""
        return np.array(self.walls[side], dtype=np.float64) - self.column(side, "us")

    def _landing(self, side: str) -> statistics.Samples:
        # Nothing is carried away for the second process of the reference.
        return self.column("reference" if side == "second" else side, "land_us")

    def _more(self, of: Callable[[str], statistics.Samples], leeway: float) -> float:
        """By how much the candidate takes longer than the slower process of the reference, where that is more than may
        be. Medians are compared, as times of calls are: what is done in fewer rounds changes those as little."""
        if self.clock != "device" or not len(self):
            return 0.0
        mine, *theirs = (float(np.median(of(side))) for side in SIDES)
        usual, reported = max(theirs), float(np.median(self.column("candidate", "us")))
        may_be = BESIDE_SHARE[self.device] * usual + leeway + EXCHANGE_SHARE * reported
        return mine - usual if mine - usual > may_be else 0.0

    def charged(self) -> Rounds:
        """The same rounds with what the candidate does beside its calls counted in."""
        more = self.beside
        if not more:
            return self
        names = ("us", "host_us", "drained_us")
        mine = [r.model_copy(update={n: getattr(r, n) + more for n in names}) for r in self.replies["candidate"]]
        return replace(self, replies={**self.replies, "candidate": mine}, charge=more)

    def __add__(self, other: Rounds) -> Rounds:
        return replace(
            self,
            replies={side: rows + other.replies[side] for side, rows in self.replies.items()},
            walls={side: rows + other.walls[side] for side, rows in self.walls.items()},
            dropped=self.dropped + other.dropped,
            bystanders=max(self.bystanders, other.bystanders),
        )

    def times(self, side: str) -> statistics.Samples:
        """What counts, by this timing's clock."""
        return self.column(side, "us") if self.clock == "device" else np.array(self.walls[side], dtype=np.float64)

    def column(self, side: str, name: str) -> statistics.Samples:
        """What the worker said."""
        return np.array([getattr(reply, name) for reply in self.replies[side]], dtype=np.float64)
