"""Far from zero digits may be lost by what the inputs' own last bits are worth there, and an answer may not."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.compare import ill_conditioned
from tools.judge.errors import measure
from tools.judge.inputs import FAR
from tools.judge.trial import Trial

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.softmax({x}, dim=-1), x.var(dim=-1, correction=0)


def get_inputs():
    return [{scale} * torch.rand(40, 300){cast}]
"""
DTYPES = {torch.float32: "", torch.float16: ".half()", torch.bfloat16: ".bfloat16()"}
SOFTMAX, VARIANCE = 0, 1


@pytest.fixture(scope="module", params=DTYPES, ids=str)
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(PROBLEM.format(x="x", scale=1, cast=DTYPES[request.param]), "full", "cpu")
    yield made
    made.close()


def passes(bench: Bench, trial: Trial, i: int, output: torch.Tensor) -> bool:
    found = measure(output.to(trial.reference[i].dtype), trial.oracle[i])
    return bench.limit(trial, i, None).admits(found) or ill_conditioned(bench, trial, i, found)


def one_pass(x: torch.Tensor) -> torch.Tensor:
    x = x.float()
    return ((x * x).mean(dim=-1) - x.mean(dim=-1).square()).clamp_min(0)


def in_plain_order(x: torch.Tensor) -> torch.Tensor:
    """One pass with one float accumulator a row for either sum."""
    total, squares = torch.zeros(x.shape[0]), torch.zeros(x.shape[0])
    for column in x.float().unbind(1):
        total, squares = total + column, squares + column * column
    return (squares / x.shape[1] - (total / x.shape[1]).square()).clamp_min(0)


def test_a_maximum_that_starts_at_zero_is_wrong(bench: Bench):
    trial = bench.trial(FAR, 0)
    x = trial.tensors[0].float()
    weights = torch.exp(x - x.amax(dim=-1, keepdim=True).clamp_min(0))
    output = weights / (weights.sum(dim=-1, keepdim=True) + 1e-30)
    assert bool(torch.isfinite(output).all())
    assert not passes(bench, trial, SOFTMAX, output)


def test_other_forms_of_the_same_are_right(bench: Bench):
    trial = bench.trial(FAR, 0)
    scaled = trial.tensors[0].float() * 1.44269504
    weights = torch.exp2(scaled - scaled.amax(dim=-1, keepdim=True))
    assert passes(bench, trial, SOFTMAX, weights / weights.sum(dim=-1, keepdim=True))
    assert passes(bench, trial, VARIANCE, one_pass(trial.tensors[0]))


@pytest.mark.parametrize("scale", [1e-1, 1e-2, 1e-5])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_variance_in_one_pass_may_lose_every_digit(dtype: torch.dtype, scale: float):
    made = Bench(PROBLEM.format(x="x", scale=scale, cast=DTYPES[dtype]), "full", "cpu")
    made.set_reduction(300)
    try:
        trial = made.trial(FAR, 0)
        for output in (one_pass(trial.tensors[0]), in_plain_order(trial.tensors[0])):
            if dtype is torch.float32 and scale < 0.1:
                assert measure(output, trial.oracle[VARIANCE]).relative > 0.1, "nothing is lost: this says nothing"
            assert passes(made, trial, VARIANCE, output)
            assert not passes(made, trial, VARIANCE, torch.full_like(output, float("nan")))
    finally:
        made.close()


def test_where_no_oracle_tells_what_bits_are_worth_finite_values_do():
    source = PROBLEM.format(x="torch.dropout(x, 0.5, True)", scale=1, cast="")
    made = Bench(source, "full", "cpu")
    try:
        trial = made.trial(FAR, 0)
        assert passes(made, trial, SOFTMAX, torch.zeros_like(trial.reference[SOFTMAX]))
    finally:
        made.close()
