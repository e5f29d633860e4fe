"""What rounding each step to fp32 costs an honest kernel may be off by, and nothing is rejected without a finding."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Generator
from typing import Any

import pytest
import torch

from tools.judge import inputs as kinds
from tools.judge import variants
from tools.judge.bench import Bench
from tools.judge.check import OWN_TRIALS
from tools.judge.client import Reply
from tools.judge.compare import Comparison, compare
from tools.judge.errors import measure
from tools.judge.limits import NOISE_RMS, Limit, floor_limit, rounded
from tools.judge.noise import noise
from tools.judge.trial import Trial
from tools.types import PrecisionClass
from tools.worker.arena import tensor_at

PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, a, b):
        return {forward}


def get_inputs():
    a = torch.randn(96, 64)
    return [{inputs}]
"""
DIVERGENCE = PROBLEM.format(
    forward="F.kl_div(F.log_softmax(a, -1), F.softmax(b, -1), reduction='batchmean')", inputs="a, torch.randn(96, 64)"
)
LOSS = PROBLEM.format(
    forward="F.cross_entropy(a @ b.t(), torch.arange(96))", inputs="4 * F.normalize(a), 4 * F.normalize(a)"
)
HINGE = PROBLEM.format(
    forward="torch.relu((a - b).norm(dim=1) - 0.2).mean()", inputs="a, a + 0.01 * torch.randn(96, 64)"
)
PRODUCT = PROBLEM.format(forward="a @ b.t()", inputs="a, torch.randn(96, 64)")


@contextlib.contextmanager
def judged(source: str) -> Generator[Bench]:
    bench = Bench(source, "full", "cpu")
    bench.set_reduction(64)
    try:
        yield bench
    finally:
        bench.close()


def held(bench: Bench, trial: Trial, output: torch.Tensor) -> Comparison:
    """What the judge says of `output` for a problem that returns one tensor."""
    place: dict[str, Any] = bench.landing_layout[0]
    tensor_at(bench.arenas["landing"], place).copy_(output)
    said = {**place, "device": "cpu", "plain": True, "aliases_input": False, "address": 0}
    reply = Reply.model_validate({"outputs": trial.outputs, "tensors": [said]})
    return compare(bench, trial, reply, 0, None)


def divergence(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """By logarithms of sums that are rounded before they are subtracted."""
    p, q = (t - t.exp().sum(1, keepdim=True).log() for t in (a, b))
    return (q.exp() * (q - p)).sum() / 96


def test_a_divergence_of_alike_distributions_is_not_held_against_the_luck_of_the_reference():
    with judged(DIVERGENCE) as bench:
        for index in range(20, 30):
            trial = bench.trial("scaled_down", index)
            found = held(bench, trial, divergence(*trial.tensors))
            assert found.passed or not trial.sound


def test_a_special_trial_counts_where_the_reference_is_nearer_than_what_is_allowed():
    with judged(DIVERGENCE) as bench:
        assert not bench.trial("scaled_down", 20).sound or bench.trial("scaled_down", 20).errors[0].relative < 1e-3
        assert bench.trial("scaled_up", 20).sound


def test_a_logarithm_of_a_sum_less_a_logit_is_honest_however_lucky_the_reference_is():
    with judged(LOSS) as bench:
        lucky = dataclasses.replace(bench.floor, rms=0.0, maximum=0.0, grades=(), spans=())
        for index in range(OWN_TRIALS):
            trial = bench.trial(kinds.OWN, index)
            a, b = trial.tensors
            logits = a @ b.t()
            most = logits.amax(1)
            whole = most + (logits - most[:, None]).exp().sum(1).log()
            found = measure((whole - logits.diagonal()).mean(), trial.oracle[0])
            limit = floor_limit(lucky, found, torch.float32, 0)
            assert limit.admits(found)
            assert limit.rms < 0.03 * found.scale  # one number is a sample of one
            assert floor_limit(dataclasses.replace(lucky, noise=()), found, torch.float32, 0).rms < limit.rms / 10


def test_where_nothing_cancels_nothing_more_is_allowed():
    with judged(PRODUCT) as bench:
        limit = bench.limit(bench.trial(kinds.OWN, 0), 0, None)
        assert 0 < NOISE_RMS * bench.floor.noise[0][0] < limit.rms
        tf32 = bench.floor.classes[PrecisionClass.TF32][0] * bench.trial(kinds.OWN, 0).errors[0].scale
        assert limit.rms < tf32 / 10


def test_noise_is_drawn_anew_and_leaves_no_trace():
    with judged(PRODUCT) as bench:
        trial = bench.trial(kinds.OWN, 0)
        before = [t.clone() for t in (*trial.tensors, *trial.oracle)]
        assert noise(bench, trial) == noise(bench, trial) != []
        assert all(map(torch.equal, before, (*trial.tensors, *trial.oracle)))


def test_where_all_outputs_are_zero_only_gross_errors_count():
    with judged(HINGE) as bench:
        base = bench.trial(kinds.OWN, 0)
        assert float(base.reference[0]) == 0
        trial, _ = variants.one_element(bench, base)
        assert trial is not None
        assert held(bench, trial, trial.reference[0] * 1.001).passed
        assert not held(bench, trial, trial.reference[0] * 1.1).passed
        assert not held(bench, trial, trial.reference[0] * 0).passed


@pytest.mark.parametrize("factor", [1 + 1e-4, 1.1, 0.0, math.nan])
@pytest.mark.parametrize("source", [HINGE, LOSS, DIVERGENCE, PRODUCT])
def test_nothing_is_rejected_without_a_finding(source: str, factor: float):
    with judged(source) as bench:
        for trial in (bench.trial(kinds.OWN, 0), variants.one_element(bench, bench.trial(kinds.OWN, 0))[0]):
            assert trial is not None
            found = held(bench, trial, trial.reference[0] * factor)
            assert found.passed or found.findings


def test_so_few_elements_are_not_said_to_be_of_shorter_operands():
    with judged(DIVERGENCE) as one, judged(PRODUCT) as many:
        single, matrix = one.trial(kinds.OWN, 0), many.trial(kinds.OWN, 0)
        short = rounded(matrix.oracle[0], PrecisionClass.TF32).float()
        assert held(many, matrix, short).reduced
        found = held(one, single, single.reference[0] * (1 + 1e-4))
        assert not found.passed
        assert not found.reduced


def test_how_far_an_error_is_beyond_its_limit():
    error = measure(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0], dtype=torch.float64))
    assert Limit(error.rms / 2, 10.0).share(error) == pytest.approx(2.0)
    assert Limit(10.0, 0.25).share(error) == pytest.approx(4.0)
    assert Limit(0.0, 0.0).share(error) == math.inf
    assert Limit(0.0, 0.0).share(measure(torch.ones(2), torch.ones(2, dtype=torch.float64))) == 0.0
