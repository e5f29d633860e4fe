"""When the judge believes a worker's clock: told by made-up samples, each of a known truth."""

from __future__ import annotations

import random

import numpy as np
import pytest

from tools.judge.client import Reply
from tools.judge.clocks import exchange_mismatch, launch_bound, series_mismatch, side_stream, work_behind
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
    # Disturbed ten times as much as the other: what is forgiven for it has an end.
    assert series_mismatch(rounds(3.0, 100.0), (60.0, 1000.0), "cpu") is not None


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


def spread(hidden: list[dict[str, float]], *, device: str = "cuda") -> Rounds:
    """A round for each of `hidden`, which says what takes the candidate longer: place_us, land_us, wall or us."""
    found = Rounds(device=device)
    for extra in hidden:
        replies = {
            side: reply(400.0).model_copy(update={"place_us": 900.0, "land_us": 0.0 if side == "second" else 900.0})
            for side in SIDES
        }
        mine = replies["candidate"]
        replies["candidate"] = mine.model_copy(
            update={name: getattr(mine, name) + extra.get(name, 0.0) for name in ("place_us", "land_us", "us")}
        )
        walls = {side: 1000.0 + (extra.get("wall", 0.0) if side == "candidate" else 0.0) for side in SIDES}
        found.add(replies, walls)
    return found


@pytest.mark.parametrize("honest", range(1, 5))
def test_a_clock_that_tells_the_truth_in_fewer_than_half_of_the_calls_is_not_believed(honest: int):
    lies = [{"us": -350.0}] * (10 - honest)
    found = exchange_mismatch(spread([{}] * honest + lies), "cuda")
    assert found is not None
    assert found.observed == {"reported_us": 50.0, "hidden_us": 350.0}


@pytest.mark.parametrize("name", ["place_us", "land_us"])
def test_what_is_computed_beside_most_calls_is_charged_to_all(name: str):
    found = spread([{name: 700.0, "us": -350.0, "wall": -350.0}] * 6 + [{}] * 4)
    assert found.before + found.behind == 700.0
    assert float(np.median(found.charged().times("candidate"))) == 750.0


def test_work_that_is_done_now_here_and_now_there_is_charged():
    """In each place it shows in a third of the rounds, which no median sees."""
    quick = {"us": -350.0, "wall": -350.0}
    found = spread([{**quick, "place_us": 500.0}, {**quick, "land_us": 500.0}, {"us": -350.0, "wall": 150.0}] * 10)
    assert (found.before, found.behind) == (0.0, 0.0)
    assert exchange_mismatch(found, "cuda") is None
    charged = found.charged()
    assert charged.charge == 500.0
    told = work_behind(charged)
    assert told is not None
    assert "500 us more pass beside its calls" in told.summary


def test_a_call_of_many_milliseconds_may_have_slower_exchanges():
    """As measured on an H200, of a kernel of 15 ms."""
    found = spread([{"us": 14_600.0, "wall": 14_700.0, "land_us": 195.0}] * 20)
    assert found.charge == 0.0
    assert found.charged().charge == 0.0
    assert exchange_mismatch(found, "cuda") is None
