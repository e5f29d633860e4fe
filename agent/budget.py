"""What a run may spend: turns, wall-clock minutes, money. Every limit that is reached is a `Stop`."""

from __future__ import annotations

import time

from pydantic import BaseModel, ConfigDict, Field

from agent.stops import Abandoned, Stop, StopReason


class Limits(BaseModel):
    """None means unlimited. A turn is one reply of the model."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_turns: int = Field(default=20, ge=1)
    max_minutes: float | None = Field(default=None, gt=0)
    max_cost: float | None = Field(default=None, gt=0, description="US dollars")


class Budget:
    """Counts what is spent against the limits. `seconds` and `cost` are what earlier processes of the run spent."""

    def __init__(self, limits: Limits, *, turns: int = 0, seconds: float = 0.0, cost: float | None = None) -> None:
        self.limits = limits
        self.turns = turns
        self.cost = cost
        self._before = seconds
        self._start = time.monotonic()

    @property
    def seconds(self) -> float:
        return self._before + time.monotonic() - self._start

    @property
    def turns_left(self) -> int:
        return max(self.limits.max_turns - self.turns, 0)

    @property
    def minutes_left(self) -> float | None:
        limit = self.limits.max_minutes
        return None if limit is None else max(limit - self.seconds / 60, 0.0)

    @property
    def cost_left(self) -> float | None:
        limit = self.limits.max_cost
        return None if limit is None else max(limit - (self.cost or 0.0), 0.0)

    def spend_turn(self, cost: float | None, tokens: int | None) -> None:
        """Count one reply. Raises `Abandoned` if there is a cost limit and the cost of the reply is not known."""
        self.turns += 1
        if cost is not None:
            self.cost = (self.cost or 0.0) + cost
        elif self.limits.max_cost is not None and tokens:
            raise Abandoned(
                "--max-cost can't be kept, since the price of this model is not known. Run the same command again with "
                "--max-turns or --max-minutes in its place."
            )

    def check(self) -> None:
        """Raises `Stop` if a limit is reached."""
        if self.turns_left == 0:
            raise Stop(StopReason.TURNS)
        if self.minutes_left == 0:
            raise Stop(StopReason.MINUTES)
        if self.cost_left == 0:
            raise Stop(StopReason.COST)
