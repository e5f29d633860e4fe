"""A value at the edge of two steps may go either way; one anywhere else may not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.compare import at_edges
from tools.judge.errors import Error, measure
from tools.judge.inputs import OWN
from tools.judge.limits import at_an_edge
from tools.judge.sensitivity import _strict  # pyright: ignore[reportPrivateUsage]

STEP = 0.037
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x / 0.037) * 0.037


def get_inputs():
    return [torch.randn(500, 400)]
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(PROBLEM, "full", "cpu")
    yield made
    made.close()


def passes(bench: Bench, *, nearest: bool, count: int) -> bool:
    """Whether an output passes that is a step off at the `count` places nearest to an edge, or furthest from one."""
    trial = bench.trial(OWN, 0)
    position = trial.tensors[0].double().flatten() / STEP
    # Inputs themselves are put at edges: few of a draw lie so near by chance.
    places = ((position - position.floor() - 0.5).abs()).argsort(descending=not nearest)[:count]
    tensors = [trial.tensors[0].clone()]
    if nearest:
        tensors[0].view(-1)[places] = ((position[places].floor() + 0.5) * STEP).float()
    edged = bench.compute(OWN, trial.seed, trial.spec, tensors)
    output = edged.oracle[0].float()
    given = tensors[0].double().flatten()[places]
    side = torch.where(output.view(-1)[places].double() > given, -STEP, STEP)
    output.view(-1)[places] += side.float()
    found = measure(output, edged.oracle[0])
    limit = bench.limit(edged, 0, None)
    return limit.admits(found) or at_edges(bench, edged, 0, output, found, limit)


def test_a_few_values_at_edges_go_either_way(bench: Bench):
    assert passes(bench, nearest=True, count=0)
    assert passes(bench, nearest=True, count=2)


def test_values_elsewhere_do_not(bench: Bench):
    assert not passes(bench, nearest=False, count=1)


def test_a_reference_that_is_itself_a_step_off_allows_no_step_elsewhere(bench: Bench):
    """It happens in one draw of twenty, and would make a step what arithmetic costs."""
    trial = bench.trial(OWN, 0)
    tensors = [trial.tensors[0].clone()]
    # Half a step, rounded to fp32 lies on one side or the other, and the quotient in fp32 is exactly a half.
    for k in range(40):
        tensors[0].view(-1)[k] = (k + 0.5) * STEP
    edged = bench.compute(OWN, trial.seed, trial.spec, tensors)
    raw = measure(edged.reference[0], edged.oracle[0])
    assert raw.maximum > STEP / 2, "no value of these went the other way"
    assert edged.errors[0].maximum < STEP / 100
    assert _strict(bench, edged)[0].maximum < STEP / 100


def test_many_do_not(bench: Bench):
    assert not passes(bench, nearest=True, count=5000)


@pytest.mark.parametrize(("maximum", "edge"), [(1e300, True), (1e-3, True), (1e-9, False)])
def test_one_of_many_elements_that_makes_the_error_is_at_an_edge_however_large(maximum: float, edge: bool):
    error = Error(maximum, maximum / 100, 0.0, 1e-5, max(maximum, 1.0), 10_000, 0)
    assert at_an_edge(error) is edge
    assert not at_an_edge(dataclasses.replace(error, elements=10))
    assert not at_an_edge(dataclasses.replace(error, unsound=1))
