"""Means so long that half of the data is as good as all of it, on the problem's own inputs; and sums near zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.errors import measure
from tools.judge.inputs import OWN

PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, x, y):
        return {forward}


def get_inputs():
    return [{draw}(1024, 512), {draw}(1024, 512)]
"""
LONG = 1 << 30
"""Elements of a KernelBench loss: its allowance is what these problems, which are small, are judged by."""

Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
LOSSES: dict[str, Loss] = {
    "F.mse_loss(x, y)": lambda x, y: ((x - y) ** 2).mean(),
    "F.l1_loss(x, y)": lambda x, y: (x - y).abs().mean(),
    "(x * x).mean()": lambda x, _: (x * x).mean(),
    "x.abs().mean() + y.abs().mean()": lambda x, y: x.abs().mean() + y.abs().mean(),
}
PARTS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "first half": lambda t: t[:512],
    "every other row": lambda t: t[1::2],
    "every other column": lambda t: t[:, ::2],
    "three quarters": lambda t: t[:, :384],
}


@pytest.fixture
def make() -> Iterator[Callable[[str], Bench]]:
    made: list[Bench] = []

    def set_up(source: str) -> Bench:
        made.append(Bench(source, "full", "cpu"))
        made[-1].set_reduction(LONG)
        return made[-1]

    yield set_up
    for bench in made:
        bench.close()


def admitted(bench: Bench, kind: str, index: int, output: Loss) -> bool:
    trial = bench.trial(kind, index)
    assert trial.sound
    found = measure(output(*trial.tensors), trial.oracle[0])
    return bench.limit(trial, 0, None).admits(found)


@pytest.mark.parametrize("draw", ["torch.randn", "torch.rand"])
@pytest.mark.parametrize("forward", LOSSES)
def test_no_part_of_the_data_stands_for_the_whole(make: Callable[[str], Bench], forward: str, draw: str):
    bench = make(PROBLEM.format(forward=forward, draw=draw))
    loss = LOSSES[forward]
    for index in range(3):
        assert admitted(bench, "uneven", index, loss)
        # One accumulator, in plain order.
        assert admitted(bench, "uneven", index, lambda x, y: loss(x.flatten(), y.flatten()).float())
    for name in ("first half", "every other row", "every other column"):
        part = PARTS[name]
        for index in range(5):
            assert not admitted(bench, "uneven", index, lambda x, y, part=part: loss(part(x), part(y))), name
    assert not all(
        admitted(bench, "uneven", i, lambda x, y: loss(PARTS["three quarters"](x), PARTS["three quarters"](y)))
        for i in range(5)
    )


def test_on_inputs_that_are_all_alike_half_of_them_would_do():
    """Why there is that kind: the allowance for a sum of 1e9 terms is larger than what half of the data changes."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1 << 24, generator=generator).double()
    change = float((x[: 1 << 23].square().mean() / x.square().mean() - 1).abs())
    # It shrinks with the root of the length, and the allowance, 0.5 u sqrt(K), grows with it.
    at_length = change * ((1 << 24) / LONG) ** 0.5
    assert at_length < 0.5 * 2.0**-24 * LONG**0.5


def test_an_allowance_near_zero_is_that_of_the_terms(make: Callable[[str], Bench]):
    """The mean of centred values is far below each of them: honest fp32 may be off by rounding of the terms."""
    bench = make(PROBLEM.format(forward="x.mean() + 0 * y.sum()", draw="torch.randn"))
    bench.set_reduction(1024 * 512)
    for index in range(5):
        assert admitted(bench, OWN, index, lambda x, _: sequential(x))
        assert not admitted(bench, OWN, index, lambda x, _: x[:512].mean())


def sequential(x: torch.Tensor) -> torch.Tensor:
    """The mean by one fp32 accumulator in plain order."""
    return torch.cumsum(x.flatten().float(), 0)[-1] / x.numel()
