"""From lists of values and constraints to the points that are tried."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from tools.tuning.constraints import Constraint
from tools.tuning.parameters import Value

MOST_LOOKED_AT = 50_000
"""Combinations that the constraints are computed for; of a larger space this many are drawn."""


@dataclass(frozen=True)
class Expansion:
    """The points to try, and what they were chosen from.

    `allowed` of the `looked_at` combinations meet the constraints; there are `combinations` in all.
    """

    points: list[dict[str, Value]]
    combinations: int
    looked_at: int
    allowed: int


def expand(space: dict[str, list[Value]], constraints: Sequence[Constraint], limit: int) -> Expansion:
    """At most `limit` points of the space that meet the constraints, in the order of its values.

    What is too many is cut by an even draw, the same for the same space. Raises ConstraintError.
    """
    values = {name: list(dict.fromkeys(map(_exact, given))) for name, given in space.items()}
    combinations = math.prod(len(v) for v in values.values())
    chance = random.Random(0)
    numbers: Sequence[int] = range(combinations)
    if combinations > MOST_LOOKED_AT:
        numbers = sorted(chance.sample(numbers, MOST_LOOKED_AT))
    allowed = [n for n in numbers if all(c.holds(_point(values, n)) for c in constraints)]
    chosen = allowed if len(allowed) <= limit else sorted(chance.sample(allowed, limit))
    return Expansion([_point(values, n) for n in chosen], combinations, len(numbers), len(allowed))


def _exact(value: Value) -> tuple[type, Value]:
    """Keeps 1, 1.0 and True apart, which are equal in Python and not the same in a source."""
    return type(value), value


def _point(values: dict[str, list[tuple[type, Value]]], number: int) -> dict[str, Value]:
    """The combination of that number; the last parameter changes fastest."""
    point: dict[str, Value] = {}
    for name, choices in reversed(values.items()):
        number, index = divmod(number, len(choices))
        point[name] = choices[index][1]
    return {name: point[name] for name in values}
