"""What operands of fewer bits than the problem's own cost is not forgiven where nothing cancels."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.errors import measure
from tools.judge.inputs import OWN

LINEAR = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(512, 256, bias=False, dtype=torch.{dtype})

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(16, 512, dtype=torch.{dtype})]
"""


@pytest.fixture
def bench(request: pytest.FixtureRequest) -> Iterator[Bench]:
    made = Bench(LINEAR.format(dtype=request.param), "full", "cpu")
    made.set_reduction(512)
    yield made
    made.close()


def admitted(bench: Bench, weight: torch.Tensor, index: int) -> bool:
    """Whether the product with `weight` (out x in), summed in fp64 and rounded once, passes."""
    trial = bench.trial(OWN, index)
    output = (trial.tensors[0].double() @ weight.double().t()).to(trial.reference[0].dtype)
    return bench.limit(trial, 0, None).admits(measure(output, trial.oracle[0]))


def quantised(weight: torch.Tensor, bits: int) -> torch.Tensor:
    """Each row in integers of that many bits with a scale of its own."""
    step = weight.double().abs().amax(1, keepdim=True) / (2 ** (bits - 1) - 1)
    return torch.round(weight.double() / step) * step


@pytest.mark.parametrize(
    ("bench", "enough", "short"), [("bfloat16", 12, 8), ("float16", 16, 11), ("float32", 24, 16)], indirect=["bench"]
)
def test_weights_of_fewer_bits_are_told(bench: Bench, enough: int, short: int):
    weight = bench.model.state_dict()["linear.weight"]
    for index in range(3):
        assert admitted(bench, weight, index)
        assert admitted(bench, quantised(weight, enough), index)
        assert not admitted(bench, quantised(weight, short), index)
