"""Means so long that half of the data is as good as all of it, on the problem's own inputs; and sums near zero."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
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
    return [{draw}(1000, 500), {draw}(1000, 500)]
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
    "first half": lambda t: t[:500],
    "every other row": lambda t: t[1::2],
    "every other column": lambda t: t[:, ::2],
    "three quarters": lambda t: t[:, :375],
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
    for name in ("first half", "every other row", "every other column"):
        part = PARTS[name]
        for index in range(5):
            assert not admitted(bench, "uneven", index, lambda x, y, part=part: loss(part(x), part(y))), name
    assert not all(
        admitted(bench, "uneven", i, lambda x, y: loss(PARTS["three quarters"](x), PARTS["three quarters"](y)))
        for i in range(5)
    )


@pytest.mark.parametrize("part", ["first half", "every other row", "every other column"])
def test_whoever_leaves_a_half_out_misses_one_of_two_outliers(make: Callable[[str], Bench], part: str):
    """A half that looks at what it sees, and takes all where that is unusual, is right on the other one alone."""
    bench, half = make(PROBLEM.format(forward="x.mean() + y.mean()", draw="torch.rand")), PARTS[part]
    for index in range(0, 12, 2):
        pair = [bench.trial("one_huge", i).tensors for i in (index, index + 1)]
        assert sorted(any(bool(half(t).max() > 1.0) for t in tensors) for tensors in pair) == [False, True]


def test_on_inputs_that_are_all_alike_half_of_them_would_do():
    """Why there is that kind: the allowance for a sum of 1e9 terms is larger than what half of the data changes."""
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(1 << 24, generator=generator).double()
    change = float((x[: 1 << 23].square().mean() / x.square().mean() - 1).abs())
    # It shrinks with the root of the length, and the allowance, 0.5 u sqrt(K), grows with it.
    at_length = change * ((1 << 24) / LONG) ** 0.5
    assert at_length < 0.5 * 2.0**-24 * LONG**0.5


def summed(x: torch.Tensor) -> torch.Tensor:
    """The sum along the last dimension by one fp32 accumulator in plain order (torch's own cumsum adds in double)."""
    return torch.from_numpy(np.add.accumulate(x.float().numpy(), axis=-1, dtype=np.float32))[..., -1]


def mean(x: torch.Tensor) -> torch.Tensor:
    return summed(x) / x.shape[-1]


def normalised(x: torch.Tensor) -> torch.Tensor:
    """Layer norm with a variance in one pass."""
    centre = mean(x)[:, None]
    return (x - centre) * torch.rsqrt(mean(x * x)[:, None] - centre * centre + 1e-5)


@pytest.mark.parametrize(
    ("forward", "honest", "wrong"),
    [
        ("x - x", lambda x, _: x - x, lambda x, _: x * 1e-6),
        ("x.mean() + 0 * y.sum()", lambda x, _: mean(x.flatten()), lambda x, _: x[:500].mean()),
        ("(x - x.mean(-1, keepdim=True)).mean(-1)", lambda x, _: mean(x - mean(x)[:, None]), lambda x, _: mean(x) / 9),
        ("F.layer_norm(x, (500,)).mean(-1)", lambda x, _: mean(normalised(x)), lambda x, _: x[:, :250].mean(-1) / 9),
        ("F.mse_loss(x * 2 / 2, x)", lambda x, _: mean(((x + x) / 2 - x).square().flatten()), lambda x, _: x[0, 0]),
    ],
)  # fmt: skip
def test_where_everything_cancels_honest_rounding_passes_and_leaving_out_does_not(
    make: Callable[[str], Bench], forward: str, honest: Loss, wrong: Loss
):
    """The oracle is about zero there, so that no limit relative to it means anything."""
    bench = make(PROBLEM.format(forward=forward, draw="torch.randn"))
    bench.set_reduction(1000 * 500 if "-1" not in forward else 500)
    for index in range(5):
        trial = bench.trial(OWN, index)
        limit = bench.limit(trial, 0, None)
        assert limit.admits(measure(honest(*trial.tensors), trial.oracle[0]))
        assert not limit.admits(measure(wrong(*trial.tensors), trial.oracle[0]))
