"""Inputs of timed calls are the problem's own, and none serves another call."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.fresh import FreshInputs
from tools.worker.altering import Alterations

PROBLEM = """
import time
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x, y, offsets):
        return torch.cosine_similarity(x, y).mean() + offsets.diff().sum()

def get_inputs():
    time.sleep(PAUSE)
    x = torch.randn(64, 256)
    offsets = torch.cat([torch.zeros(1, dtype=torch.int64), torch.randint(1, 20, (40,)).cumsum(0)])
    return [x, x + 0.01 * torch.randn_like(x), offsets]

def get_init_inputs():
    return []
"""
ALONE = """
import time
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x.sum()

def get_inputs():
    time.sleep(PAUSE)
    return [torch.randn(64, 256)]

def get_init_inputs():
    return []
"""


@pytest.fixture
def make() -> Callable[[str, float], Bench]:
    return lambda source, pause: Bench(source.replace("PAUSE", str(pause)), "full", "cpu")


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_what_belongs_together_stays_so_however_slow_the_draws(make: Callable[[str, float], Bench], pause: float):
    fresh = FreshInputs(make(PROBLEM, pause), outlier=False)
    two = fresh.two()
    first, second = two()
    for x, y, offsets in (first, second, fresh.next()):
        assert float(torch.cosine_similarity(x, y).min()) > 0.99
        assert int(offsets[0]) == 0
        assert bool((offsets.diff() > 0).all())
    assert not torch.equal(first[0], second[0])
    assert fresh.loose == [0, 1]


@pytest.mark.parametrize("pause", [0.0, 0.1])
@pytest.mark.parametrize("source", [PROBLEM, ALONE])
def test_values_that_were_let_go_of_can_be_had_once_more(
    make: Callable[[str, float], Bench], source: str, pause: float
):
    fresh = FreshInputs(make(source, pause), outlier=True)
    two = fresh.two()
    first, second = two()
    given = [t.clone() for t in first + second]
    for t in first:
        t.zero_()
    fresh.next()
    again = [t for draw in two() for t in draw]
    assert all(map(torch.equal, given, again))


def test_independent_noise_is_mixed_where_drawing_is_slow(make: Callable[[str, float], Bench]):
    bench = make(ALONE, 0.1)
    fresh = FreshInputs(bench, outlier=True)
    drawn, outliers = bench.problem.draw_seconds, 0
    bench.problem.draw_seconds = 0.0
    seen = set[bytes]()
    for _ in range(20):
        (x,) = fresh.next()
        outliers += fresh.has_outlier
        assert (float(x.abs().max()) > 100) == fresh.has_outlier
        seen.add(x.numpy().tobytes())
    assert drawn > 0.09
    assert bench.problem.draw_seconds == 0.0  # none was drawn for these
    assert len(seen) == 20
    assert 0 < outliers < 20


def test_some_values_of_every_row_change_before_each_call_alike_in_every_process():
    def made() -> tuple[torch.Tensor, torch.Tensor]:
        generator = torch.Generator().manual_seed(3)
        return torch.randn(40, 500, generator=generator), torch.randn(40, 500, generator=generator)

    (mine, other), (theirs, third) = made(), made()
    here, there = Alterations([mine], [other], [0], 7), Alterations([theirs], [third], [0], 7)
    values = torch.cat([mine.flatten(), other.flatten()]).sort().values
    for _ in range(10):
        before = mine.clone()
        here.next()
        there.next()
        assert torch.equal(mine, theirs)
        assert bool((mine != before).any(dim=1).all())
        assert float((mine != before).float().mean()) < 0.05
    assert torch.equal(torch.cat([mine.flatten(), other.flatten()]).sort().values, values)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 95, 97, 1000])
def test_few_values_are_swapped_as_well(count: int):
    mine, other = torch.randn(count), torch.randn(count)
    values = torch.cat([mine, other]).sort().values
    changes = Alterations([mine], [other], [0], count)
    for _ in range(20):
        changes.next()
    assert torch.equal(torch.cat([mine, other]).sort().values, values)


def test_inputs_that_are_tied_to_each_other_are_left_alone():
    index, other = torch.arange(10), torch.arange(10).flip(0)
    changes = Alterations([index], [other], [], 1)
    changes.next()
    assert torch.equal(index, torch.arange(10))


def test_transposed_inputs_are_altered_where_they_lie():
    order = random.Random(1)
    mine, other = torch.randn(30, 50).t(), torch.randn(30, 50).t()
    before = mine.clone()
    Alterations([mine], [other], [0], order.getrandbits(31)).next()
    assert mine.stride() == (1, 50)
    assert not torch.equal(mine, before)
