"""Outputs that are differences of larger numbers: a sum in plain order may be as far off as those are large."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.errors import measure
from tools.judge.inputs import OWN
from tools.judge.limits import rounded
from tools.types import PrecisionClass

TERMS = 10_000
PROBLEM = f"""
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a.mean(-1) - b.mean(-1)


def get_inputs():
    return [torch.rand(30, {TERMS}), torch.rand(30, {TERMS})]
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(PROBLEM, "full", "cpu")
    made.set_reduction(TERMS)
    yield made
    made.close()


def mean(x: torch.Tensor) -> torch.Tensor:
    """By one float accumulator a row, in plain order."""
    total = torch.zeros(x.shape[0])
    for column in x.unbind(1):
        total = total + column
    return total / x.shape[1]


def test_one_accumulator_is_honest(bench: Bench):
    for index in range(3):
        trial = bench.trial(OWN, index)
        a, b = trial.tensors
        found = measure(mean(a) - mean(b), trial.oracle[0])
        assert bench.limit(trial, 0, None).admits(found)
        assert found.relative > 2e-5, "nothing is lost: this says nothing"


def test_short_operands_are_not(bench: Bench):
    for index in range(3):
        trial = bench.trial(OWN, index)
        a, b = (rounded(t.double(), PrecisionClass.BF16) for t in trial.tensors)
        found = measure((a.mean(-1) - b.mean(-1)).float(), trial.oracle[0])
        assert not bench.limit(trial, 0, None).admits(found)
