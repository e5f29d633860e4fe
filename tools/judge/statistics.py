"""Statistics of paired timings: medians, bootstrap intervals of a ratio, and when a difference may be claimed.

Pairs are resampled whole, so what both sides of a pair share (clock, temperature, neighbours) cancels. The interval is
the percentile bootstrap of the ratio of medians, 2000 resamples, 95%.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tools.types import Interval, SpeedClaim

RESAMPLES = 2000
Samples = NDArray[np.float64]


def interval(samples: Samples, *, seed: int = 0) -> Interval:
    """Median of `samples` with its 95% interval."""
    medians = np.median(_resampled(samples, seed), axis=1)
    low, high = np.percentile(medians, [2.5, 97.5])
    return Interval(value=float(np.median(samples)), low=float(low), high=float(high))


def ratio(numerator: Samples, denominator: Samples, *, seed: int = 0) -> Interval:
    """Ratio of medians of paired samples (same length, same order) with its 95% interval."""
    index = _index(len(numerator), seed)
    ratios = np.median(numerator[index], axis=1) / np.median(denominator[index], axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    return Interval(value=float(np.median(numerator) / np.median(denominator)), low=float(low), high=float(high))


def product(first: Interval, second: Interval) -> Interval:
    """Two ratios that were measured apart, multiplied: their relative errors add up in quadrature."""
    value = first.value * second.value
    down = np.hypot(np.log(first.value / first.low), np.log(second.value / second.low))
    up = np.hypot(np.log(first.high / first.value), np.log(second.high / second.value))
    return Interval(value=value, low=float(value * np.exp(-down)), high=float(value * np.exp(up)))


def null_spread(first: Samples, second: Samples) -> float:
    """How far from 1 the reference's ratio to itself lies, interval included: what the method can't tell apart."""
    own = ratio(first, second)
    return max(abs(own.low - 1), abs(own.high - 1))


def claim(speedup: Interval, null: float) -> SpeedClaim:
    """Faster or slower only where the whole interval lies beyond the null spread."""
    if speedup.low > 1 + null:
        return SpeedClaim.FASTER
    if speedup.high < 1 / (1 + null):
        return SpeedClaim.SLOWER
    return SpeedClaim.INDISTINGUISHABLE


def narrow(speedup: Interval, width: float) -> bool:
    """Whether the interval lies within `width` (relative) of its value on both sides."""
    return max(speedup.high - speedup.value, speedup.value - speedup.low) <= width * speedup.value


def _index(count: int, seed: int) -> NDArray[np.int64]:
    return np.random.default_rng(seed).integers(0, count, size=(RESAMPLES, count))


def _resampled(samples: Samples, seed: int) -> Samples:
    return samples[_index(len(samples), seed)]
