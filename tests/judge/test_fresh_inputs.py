"""Inputs of timed calls are the problem's own, and none serves another call."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.fresh import FreshInputs
from tools.judge.slots import MOST_IN_ROW

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
    draws = fresh.several(2)
    for x, y, offsets in (draws(0), draws(1), fresh.next()):
        assert float(torch.cosine_similarity(x, y).min()) > 0.99
        assert int(offsets[0]) == 0
        assert bool((offsets.diff() > 0).all())
    assert not torch.equal(draws(0)[0], draws(1)[0])
    assert not torch.equal(draws(0)[2], draws(1)[2])


@pytest.mark.parametrize("pause", [0.0, 0.1])
@pytest.mark.parametrize("source", [PROBLEM, ALONE])
def test_values_of_a_row_can_be_had_once_more(make: Callable[[str, float], Bench], source: str, pause: float):
    fresh = FreshInputs(make(source, pause), outlier=True)
    draws = fresh.several(3)
    given = [[t.clone() for t in draws(i)] for i in range(3)]
    fresh.next()
    for i in range(3):
        assert all(map(torch.equal, given[i], draws(i)))
    others = [given[0], given[1], given[2], fresh.next()]
    assert not any(torch.equal(a[0], b[0]) for i, a in enumerate(others) for b in others[:i])


def test_few_slow_draws_make_a_row_and_many_quick_ones(make: Callable[[str, float], Bench]):
    bench = make(PROBLEM, 0.0)
    fresh = FreshInputs(bench, outlier=False)
    bench.problem.draw_seconds = 0.05
    assert fresh.most == 2
    bench.problem.draw_seconds = 10.0
    assert fresh.most == 1
    bench.problem.draw_seconds = 1e-5
    assert fresh.most == MOST_IN_ROW


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


@pytest.mark.parametrize("pause", [0.0, 0.1])
def test_calls_of_a_row_hold_outliers_as_single_ones_do(make: Callable[[str, float], Bench], pause: float):
    """Who leaves a part out in rows alone would be seen nowhere else."""
    fresh = FreshInputs(make(ALONE, pause), outlier=True)
    draws = fresh.several(20)
    assert 0 < len(draws.outliers) < 20
    for i in range(20):
        assert (float(draws(i)[0].abs().max()) > 100) == (i in draws.outliers)
    assert not FreshInputs(make(ALONE, 0.0), outlier=False).several(20).outliers


def test_a_problem_that_gives_the_same_tensor_each_time_keeps_it(make: Callable[[str, float], Bench]):
    source = ALONE.replace("    return [torch.randn(64, 256)]", "    return [X]") + "\n\nX = torch.randn(64, 256)\n"
    fresh = FreshInputs(make(source, 0.0), outlier=True)
    draws = fresh.several(20)
    assert 0 < len(draws.outliers) < 20
    plain = {draws(i)[0].numpy().tobytes() for i in range(20) if i not in draws.outliers}
    assert len(plain) == 1
    assert all(int((draws(i)[0].abs() > 100).sum()) == 1 for i in draws.outliers)
