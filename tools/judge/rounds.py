"""Samples of a timing: one row a round, of the candidate and of the reference in two processes."""

from __future__ import annotations

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
have its outputs carried away, where no work is done. On the CPU these are times of threads, on CUDA exchanges by the
judge's clock, the emptying of caches with them: on an H200 those of six honest kernels were up to 90 us longer than one
reference's, and up to 26 us than the longer one of two."""


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
        return self._more("place_us")

    @property
    def behind(self) -> float:
        """Microseconds by which carrying a call's outputs away takes longer than it should: what is computed only when
        somebody looks at it shows there."""
        return self._more("land_us")

    def _more(self, name: str) -> float:
        """By how much the candidate takes longer than the slower process of the reference for what is the worker's own
        work, where that is more than may be. Lower deciles are compared, which neighbours on a busy machine move
        least."""
        if self.clock != "device" or not len(self):
            return 0.0
        mine, *theirs = (float(np.percentile(self.column(side, name), 10)) for side in SIDES)
        usual = max(theirs)
        more = mine - usual
        return more if more > BESIDE_SHARE[self.device] * usual + BESIDE_US[self.device] else 0.0

    def charged(self) -> Rounds:
        """The same rounds with what the candidate does before and behind its calls counted in."""
        more = self.before + self.behind
        if not more:
            return self
        names = ("us", "host_us", "drained_us")
        mine = [r.model_copy(update={n: getattr(r, n) + more for n in names}) for r in self.replies["candidate"]]
        return replace(self, replies={**self.replies, "candidate": mine})

    def __add__(self, other: Rounds) -> Rounds:
        return replace(
            self,
            replies={side: rows + other.replies[side] for side, rows in self.replies.items()},
            walls={side: rows + other.walls[side] for side, rows in self.walls.items()},
            dropped=self.dropped + other.dropped,
        )

    def times(self, side: str) -> statistics.Samples:
        """What counts, by this timing's clock."""
        return self.column(side, "us") if self.clock == "device" else np.array(self.walls[side], dtype=np.float64)

    def column(self, side: str, name: str) -> statistics.Samples:
        """What the worker said."""
        return np.array([getattr(reply, name) for reply in self.replies[side]], dtype=np.float64)
