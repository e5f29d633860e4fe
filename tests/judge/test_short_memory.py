"""Where memory is short expected outputs are not kept: errors are added up in slices, and are the same errors."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
import torch

from tools.judge import bench as bench_module
from tools.judge.bench import Bench
from tools.judge.errors import measure
from tools.judge.inputs import OWN
from tools.judge.preflight import CONTEXTS, Sizes

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(12, 7)
        self.norm = nn.BatchNorm1d(12)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x):
        {forward}


def get_inputs():
    return [torch.randn(50, 12)]
"""
APART = "return self.linear(x), x.exp()"
TOGETHER = "return self.linear(x - x.mean(0))"
COUNTING = "self.calls += 1; return self.linear(x)"

Make = Callable[..., Bench]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made: list[Bench] = []
    monkeypatch.setattr(secrets, "randbits", lambda bits: 12345)
    monkeypatch.setattr(secrets, "token_bytes", lambda count: bytes(count))  # both benches draw the same

    def build(forward: str, *, tight: bool) -> Bench:
        monkeypatch.setattr(bench_module, "check_size", lambda *_: tight)
        made.append(Bench(PROBLEM.replace("{forward}", forward), "full", "cpu"))
        return made[-1]

    yield build
    for bench in made:
        bench.close()


def test_errors_in_slices_are_those_of_the_whole(make: Make):
    roomy, short = make(APART, tight=False), make(APART, tight=True)
    for index in range(2):
        whole, trial = roomy.trial(OWN, index), short.trial(OWN, index)
        assert whole.truth.bytes > 0 == trial.truth.bytes
        assert trial.bytes == whole.bytes - whole.truth.bytes
        wrong = [t + 0.01 * torch.randn_like(t) for t in whole.reference]
        wrong[1][49, 11] = float("nan")
        for outputs in (whole.reference, wrong):
            for mine, theirs in zip(trial.truth.measured(outputs), whole.truth.measured(outputs), strict=True):
                assert (mine.unsound, mine.elements) == (theirs.unsound, theirs.elements)
                for name in ("maximum", "rms", "bias", "scale", "peak"):
                    assert getattr(mine, name) == pytest.approx(getattr(theirs, name), rel=1e-9, abs=1e-15)
    assert short.double.way == "slices"
    assert short.oracle == "fp64"
    for name, found in short.floor.classes.items():
        assert found == pytest.approx(roomy.floor.classes[name], rel=1e-6)


def test_whoever_needs_them_whole_gets_them(make: Make):
    roomy, short = make(APART, tight=False), make(APART, tight=True)
    for a, b in zip(short.trial(OWN, 0).oracle, roomy.trial(OWN, 0).oracle, strict=True):
        assert measure(a, b).maximum <= 1e-12
    begin = short.trial(OWN, 0).truth.beginning(0, 20)
    assert measure(begin, roomy.trial(OWN, 0).oracle[0].reshape(-1)[:20]).maximum <= 1e-12


@pytest.mark.parametrize("forward", [TOGETHER, COUNTING])
def test_what_can_not_be_taken_apart_is_kept(make: Make, forward: str):
    short = make(forward, tight=True)
    assert short.trial(OWN, 0).truth.bytes > 0
    assert short.oracle == "fp64"


def test_an_80_gb_device_is_short_of_memory_for_a_large_convolution_and_a_141_gb_one_is_not():
    inputs, outputs, weights = 16 * 64 << 22, 16 * 128 << 22, 64 * 128 << 2
    sizes = Sizes(inputs, outputs, weights, 2 * inputs, 2 * outputs, 2 * weights)
    assert sizes.needed(fp64=False) < 79 << 30 < sizes.comfortable < 139 << 30
    assert sizes.comfortable - CONTEXTS > sizes.needed(fp64=True)
