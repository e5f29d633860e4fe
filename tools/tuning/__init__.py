"""Tuning: one source with marked parameters, many variants of it, and which of them is the fastest.

A parameter is marked by being defined (`#define TILE 64`, `constexpr int TILE = 64;`, `-DTILE=64`, or `TILE = 64` at
the top level of the Python file), so a source that can be tuned is a whole candidate as it stands, and so is each
variant.
"""

from tools.tuning.constraints import Constraint, ConstraintError
from tools.tuning.parameters import Point, Value, places, variant
from tools.tuning.records import SweepRow, TuneRow
from tools.tuning.space import Expansion, expand

__all__ = [
    "Constraint",
    "ConstraintError",
    "Expansion",
    "Point",
    "SweepRow",
    "TuneRow",
    "Value",
    "expand",
    "places",
    "variant",
]
