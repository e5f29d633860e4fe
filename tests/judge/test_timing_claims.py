"""Statistics of paired timings: intervals that cover, and claims that a kernel against itself does not get."""

from __future__ import annotations

import numpy as np
import pytest

from tools.judge import statistics
from tools.judge.statistics import claim, interval, narrow, null_spread, ratio
from tools.types import Interval, SpeedClaim

ROUNDS = 30


def timings(rng: np.random.Generator, count: int, us: float, noise: float) -> statistics.Samples:
    """Timings as they come: a drift that both sides of a pair share is added by the caller; spikes are one-sided."""
    spikes = (rng.random(count) < 0.05) * rng.exponential(0.5, count)
    return us * (1 + noise * rng.standard_normal(count) + spikes)


def paired(rng: np.random.Generator, *us: float, noise: float = 0.01, drift: float = 0.05) -> list[statistics.Samples]:
    """One series for each time in `us`; a slow wave of clock and neighbours is common to all of a round."""
    common = 1 + drift * np.sin(np.linspace(0, 6, ROUNDS) + rng.random() * 6)
    return [timings(rng, ROUNDS, t, noise) * common for t in us]


@pytest.fixture(autouse=True)
def fewer_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand simulated comparisons in seconds; a percentile of 400 is good to one."""
    monkeypatch.setattr(statistics, "RESAMPLES", 400)


def test_an_interval_lies_round_the_median():
    samples = np.array([1.0, 2.0, 3.0, 4.0, 100.0])
    found = interval(samples)
    assert found.value == 3.0
    assert found.low <= 3.0 <= found.high
    assert interval(np.full(9, 7.0)) == Interval(value=7.0, low=7.0, high=7.0)


def test_the_interval_of_a_ratio_covers_the_truth_nearly_always():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        reference, candidate = paired(rng, 120.0, 100.0)
        found = ratio(reference, candidate)
        covered += found.low <= 1.2 <= found.high
    # 95% is what it aims at. A percentile bootstrap of medians is conservative; far below would be a wrong claim.
    assert covered >= 0.92 * 400


def test_the_product_of_two_ratios_is_as_uncertain_as_both():
    speedup, baseline = Interval(value=2.0, low=1.96, high=2.04), Interval(value=0.8, low=0.776, high=0.824)
    found = statistics.product(speedup, baseline)
    assert found.value == pytest.approx(1.6)
    # Two and three percent in quadrature are 3.6.
    assert found.low == pytest.approx(1.6 * (1 - 0.036), rel=0.002)
    assert found.high == pytest.approx(1.6 * (1 + 0.036), rel=0.002)
    assert statistics.product(speedup, Interval(value=1, low=1, high=1)) == speedup


def test_pairs_are_resampled_whole_so_that_a_common_drift_cancels():
    rng = np.random.default_rng(2)
    steady, drifting = (ratio(*paired(rng, 110.0, 100.0, noise=0.002, drift=drift)) for drift in (0.0, 0.3))
    assert drifting.high - drifting.low < 0.2
    assert steady.high - steady.low < 0.02
    alone = interval(paired(rng, 100.0, noise=0.002, drift=0.3)[0])
    assert (alone.high - alone.low) / alone.value > 2 * (drifting.high - drifting.low)


def test_the_same_seed_gives_the_same_interval():
    first, second = paired(np.random.default_rng(3), 10.0, 11.0)
    assert ratio(first, second) == ratio(first, second)
    assert ratio(first, second) != ratio(first, second, seed=1)


def test_a_kernel_against_itself_gets_a_claim_in_less_than_two_of_a_hundred():
    rng = np.random.default_rng(4)
    claims = 0
    for _ in range(1000):
        reference, second, candidate = paired(rng, 100.0, 100.0, 100.0)
        found = claim(ratio(reference, candidate), null_spread(reference, second))
        claims += found is not SpeedClaim.INDISTINGUISHABLE
    assert claims < 20


def test_two_processes_of_unlike_luck_get_no_claim_either():
    """A process may lie a per cent off for all of its life, by the layout of its memory."""
    rng = np.random.default_rng(5)
    claims = 0
    for _ in range(300):
        lucks = 100.0 * (1 + 0.01 * rng.standard_normal(3))
        reference, second, candidate = paired(rng, *lucks)
        found = claim(ratio(reference, candidate), null_spread(reference, second))
        claims += found is not SpeedClaim.INDISTINGUISHABLE
    assert claims < 0.25 * 300
    plain = [claim(ratio(*paired(rng, *(100.0 * (1 + 0.01 * rng.standard_normal(2))))), 0.0) for _ in range(300)]
    assert sum(c is not SpeedClaim.INDISTINGUISHABLE for c in plain) > 2 * claims


@pytest.mark.parametrize(("us", "expected"), [(80.0, SpeedClaim.FASTER), (125.0, SpeedClaim.SLOWER)])
def test_a_real_difference_is_claimed(us: float, expected: SpeedClaim):
    rng = np.random.default_rng(6)
    found = 0
    for _ in range(100):
        reference, second, candidate = paired(rng, 100.0, 100.0, us)
        found += claim(ratio(reference, candidate), null_spread(reference, second)) is expected
    assert found >= 98


@pytest.mark.parametrize(
    ("low", "high", "null", "expected"),
    [
        (1.02, 1.05, 0.01, SpeedClaim.FASTER),
        (1.02, 1.05, 0.02, SpeedClaim.INDISTINGUISHABLE),
        (0.90, 0.97, 0.02, SpeedClaim.SLOWER),
        (0.90, 0.99, 0.02, SpeedClaim.INDISTINGUISHABLE),
        (0.90, 1.30, 0.0, SpeedClaim.INDISTINGUISHABLE),
    ],
)
def test_the_whole_interval_has_to_lie_beyond_the_spread(low: float, high: float, null: float, expected: SpeedClaim):
    assert claim(Interval(value=(low + high) / 2, low=low, high=high), null) is expected


def test_the_null_spread_holds_both_ends_of_the_references_ratio_to_itself():
    rng = np.random.default_rng(7)
    first, second = paired(rng, 100.0, 103.0, noise=0.001, drift=0.0)
    spread = null_spread(first, second)
    own = ratio(first, second)
    assert spread == max(abs(own.low - 1), abs(own.high - 1))
    assert 0.02 < spread < 0.05


def test_narrow_looks_at_the_wider_side():
    assert narrow(Interval(value=1.0, low=0.995, high=1.005), 0.01)
    assert not narrow(Interval(value=1.0, low=0.995, high=1.02), 0.01)
    assert not narrow(Interval(value=1.0, low=0.98, high=1.005), 0.01)
    assert narrow(Interval(value=10.0, low=9.95, high=10.05), 0.01)
