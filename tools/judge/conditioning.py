"""What honest arithmetic may cost where last bits of the inputs make the output: one nearly singular system of many."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import torch

from tools.judge.inputs import other_draws, shake
from tools.judge.limits import UNIT_ROUNDOFF, Limit
from tools.judge.oracle import NoDouble
from tools.judge.sensitivity import changed
from tools.judge.trial import Trial

if TYPE_CHECKING:
    from tools.judge.bench import Bench

AMPLIFIED = 8.0
"""A change of the inputs by one unit of fp32 changes the output by more units than that, of its own scale."""

BACKWARD, DRAWS = 64.0, 3
"""Elimination is as far off as inputs changed by so many units make it: up to 23 for 32 unknowns and up to 99 for 128,
in the median up to 11 (docs/judge.md). Ten-bit operands cost 8192."""

STEEPER, LEAST_GROWTH = 16, 6.0
"""Inputs changed by so many units change the output so many times as much at least."""

MOST_SHAKEN = 1 << 26
"""Values of inputs and outputs together: six evaluations in fp64 take that long."""


def conditioned_limit(bench: Bench, trial: Trial, i: int) -> Limit | None:
    """What an error of output `i` may be where the last bits of these inputs count: of 200 systems of equations one is
    so near to singular that all of the error is its own, and the reference's is as much a matter of luck there as the
    candidate's. None where inputs are not such, nothing tells, or it would take long to tell."""
    size = sum(t.numel() for t in (*trial.tensors, *trial.reference))
    short = trial.reference[i].dtype is not torch.float32
    if short or bench.oracle != "fp64" or bench.uses_rng or bench.double.way != "whole" or size > MOST_SHAKEN:
        return None
    try:
        (rms, largest), (_, larger) = (_shaken(bench, trial, i, by) for by in (1, STEEPER))
    except (NoDouble, MemoryError, torch.OutOfMemoryError):
        return None
    # Where a step is crossed it is as high however far the inputs were moved, and is no measure of arithmetic.
    grows = LEAST_GROWTH * largest < larger < math.inf
    amplified = rms > AMPLIFIED * UNIT_ROUNDOFF[torch.float32] * trial.errors[i].scale
    return Limit(BACKWARD * rms, BACKWARD * largest) if grows and amplified else None


def _shaken(bench: Bench, trial: Trial, i: int, by: int) -> tuple[float, float]:
    """RMS and maximum of what changing inputs and weights by up to `by` last bits of fp32 changes in output `i`."""
    generator, size = other_draws(trial.seed, bench.device), by * UNIT_ROUNDOFF[torch.float32]
    drawn = [changed(bench, trial, lambda t: shake(t.double(), size, generator))[i] for _ in range(DRAWS)]
    if any(e.unsound for e in drawn):
        return math.inf, math.inf
    return math.sqrt(sum(e.rms**2 for e in drawn) / DRAWS), max(e.maximum for e in drawn)
