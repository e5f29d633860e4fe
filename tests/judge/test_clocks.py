"""When the judge believes a worker's clock: told by made-up samples, each of a known truth."""

from __future__ import annotations

import random

import pytest

from tools.judge.client import Reply
from tools.judge.clocks import exchange_mismatch, launch_bound, series_mismatch, side_stream
from tools.judge.rounds import SIDES, Rounds


def reply(us: float, *, host_us: float = 10.0, drained_us: float | None = None) -> Reply:
    return Reply(outputs={}, tensors=[], us=us, host_us=host_us, drained_us=us if drained_us is None else drained_us)


def rounds(candidate: float, reference: float, *, hidden: float = 0.0, exchange: float = 300.0) -> Rounds:
    """Thirty rounds: `hidden` us a call pass without the candidate's saying so; exchanges are noisy."""
    noise = random.Random(1)
    found = Rounds()
    for _ in range(30):
        said = {"candidate": candidate, "reference": reference, "second": reference}
        walls = {s: said[s] + exchange + noise.expovariate(1 / 40) + (hidden if s == "candidate" else 0) for s in SIDES}
        found.add({side: reply(us) for side, us in said.items()}, walls)
    return found


def test_an_honest_clock_is_believed():
    assert exchange_mismatch(rounds(100.0, 150.0), "cpu") is None
    assert exchange_mismatch(rounds(5000.0, 90.0), "cpu") is None
    assert series_mismatch(rounds(100.0, 150.0), (80.0, 120.0), "cuda") is None
    assert series_mismatch(rounds(100.0, 150.0), (120.0, 140.0), "cuda") is None


def test_much_hidden_time_shows_in_the_exchange():
    found = exchange_mismatch(rounds(10.0, 400.0, hidden=390.0), "cpu")
    assert found is not None
    assert found.severity == "warning"
    assert 300 < found.observed["hidden_us"] < 450


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_little_hidden_time_shows_in_a_series(device: str):
    lying = rounds(0.001, 65.0, hidden=60.0)
    assert exchange_mismatch(lying, "cpu") is None
    found = series_mismatch(lying, (60.0, 50.0), device)
    assert found is not None
    assert found.observed == {"reported_us": 0.0, "hidden_us": 60.0}


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_kernel_shorter_than_what_a_clock_may_hide_hides_no_more_than_itself(device: str):
    assert series_mismatch(rounds(0.001, 12.0), (6.0, 5.0), device) is not None
    assert series_mismatch(rounds(1.0, 12.0), (6.0, 5.0), device) is not None
    assert series_mismatch(rounds(5.0, 12.0), (8.0, 5.0), device) is None


def test_a_machine_that_has_become_busy_is_no_lie():
    assert series_mismatch(rounds(1000.0, 1500.0), (2500.0, 3100.0), "cpu") is None
    assert series_mismatch(rounds(1000.0, 1500.0), (2900.0, 1500.0), "cpu") is not None


def test_the_judges_clocks_replace_what_the_worker_says():
    lying = rounds(0.001, 65.0, hidden=60.0)
    walls = lying.by_wall()
    assert lying.times("candidate").max() == 0.001
    assert walls.times("candidate").min() > 300
    both = walls + walls
    assert (both.clock, len(both)) == ("wall", 60)


def test_a_dropped_round_leaves_nothing():
    found = rounds(10.0, 20.0)
    found.drop_last()
    assert (len(found), found.dropped) == (29, 1)
    assert {len(rows) for rows in (*found.replies.values(), *found.walls.values())} == {29}


def test_work_after_the_call_shows():
    quiet = [reply(50.0, drained_us=55.0) for _ in range(10)]
    assert side_stream(quiet, quiet) is None
    assert side_stream([reply(5.0, drained_us=90.0) for _ in range(10)], quiet) is not None


def test_a_launch_longer_than_the_work_is_pointed_out():
    found = launch_bound(120.0, 35.0)
    assert found is not None
    assert (found.severity, found.observed) == ("note", {"host_us": 120.0, "device_us": 35.0})
    assert "CUDA graph" in found.summary


@pytest.mark.parametrize(("host_us", "queued_us"), [(100.0, 3900.0), (12.0, 9.0), (1100.0, 1000.0)])
def test_a_launch_that_the_work_hides_is_not(host_us: float, queued_us: float):
    assert launch_bound(host_us, queued_us) is None


def beside(*, place_us: tuple[float, float, float], land_us: tuple[float, float]) -> Rounds:
    """Thirty rounds of calls of 20 us on CUDA, and what the three sides take beside."""
    found = Rounds(device="cuda")
    for _ in range(30):
        said = dict(zip(SIDES, map(reply, (20.0,) * 3), strict=True))
        lands = (*land_us, 0.0)
        replies = {
            side: said[side].model_copy(update={"place_us": place, "land_us": land})
            for side, place, land in zip(SIDES, place_us, lands, strict=True)
        }
        found.add(replies, dict.fromkeys(SIDES, 600.0))
    return found


@pytest.mark.parametrize("place_us", [(949.0, 859.0, 923.0), (813.0, 713.0, 942.0), (769.0, 738.0, 738.0)])
@pytest.mark.parametrize("land_us", [(459.0, 465.0), (691.0, 636.0), (551.0, 534.0)])
def test_exchanges_of_honest_kernels_differ_and_cost_nothing(
    place_us: tuple[float, float, float], land_us: tuple[float, float]
):
    """As measured on an H200."""
    found = beside(place_us=place_us, land_us=land_us)
    assert (found.before, found.behind) == (0.0, 0.0)
    assert found.charged().times("candidate").max() == 20.0


def test_what_is_computed_beside_the_call_is_charged():
    found = beside(place_us=(1030.0, 859.0, 859.0), land_us=(810.0, 630.0))
    assert (found.before, found.behind) == (171.0, 180.0)
    assert found.charged().times("candidate").min() == pytest.approx(371.0)
    assert found.charged().times("reference").max() == 20.0
