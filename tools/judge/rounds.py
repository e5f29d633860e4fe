"""Samples of a timing: one row a round, of the candidate and of the reference in two processes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from tools.judge import statistics
from tools.judge.client import Reply

SIDES = ("candidate", "reference", "second")
Clock = Literal["device", "wall", "series"]
"""Whose word a timing is: the worker's device clock, call by call; the judge's own clock over each whole exchange; the
judge's own clock over many calls in a row."""


PLACE_SHARE, PLACE_US = 0.15, 30.0
COPY_SHARE, COPY_US = 1.0, 10.0
"""By so much, and so many microseconds, a candidate may take longer than the reference to be given its inputs, where no
work is done, and to have its outputs carried away: these may lie in memory in another way, or not in the caches."""


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
        return Rounds(self.replies, self.walls, "wall", self.dropped)

    @property
    def before(self) -> float:
        """Microseconds by which being given inputs takes longer than it should: where code of the candidate's runs then
        (something dies, a signal comes), it may be at work already."""
        return self._more("place_us", PLACE_SHARE, PLACE_US)

    @property
    def behind(self) -> float:
        """Microseconds by which carrying a call's outputs away takes longer than it should: what is computed only when
        somebody looks at it shows there."""
        return self._more("land_us", COPY_SHARE, COPY_US)

    def _more(self, name: str, share: float, least: float) -> float:
        """By how much the candidate takes longer than the reference for what is the worker's own work, where that is
        more than may be. Lower deciles are compared, which neighbours on a busy machine move least."""
        mine, theirs = (self.column(side, name) for side in ("candidate", "reference"))
        if self.clock != "device" or not len(mine):
            return 0.0
        usual = float(np.percentile(theirs, 10))
        more = float(np.percentile(mine, 10)) - usual
        return more if more > share * usual + least else 0.0

    def charged(self) -> Rounds:
        """The same rounds with what the candidate does before and behind its calls counted in."""
        more = self.before + self.behind
        if not more:
            return self
        names = ("us", "host_us", "drained_us")
        mine = [r.model_copy(update={n: getattr(r, n) + more for n in names}) for r in self.replies["candidate"]]
        return Rounds({**self.replies, "candidate": mine}, self.walls, self.clock, self.dropped)

    def __add__(self, other: Rounds) -> Rounds:
        return Rounds(
            {side: rows + other.replies[side] for side, rows in self.replies.items()},
            {side: rows + other.walls[side] for side, rows in self.walls.items()},
            self.clock,
            self.dropped + other.dropped,
        )

    def times(self, side: str) -> statistics.Samples:
        """What counts, by this timing's clock."""
        return self.column(side, "us") if self.clock == "device" else np.array(self.walls[side], dtype=np.float64)

    def column(self, side: str, name: str) -> statistics.Samples:
        """What the worker said."""
        return np.array([getattr(reply, name) for reply in self.replies[side]], dtype=np.float64)
