"""Where last bits of the inputs make the output an honest kernel may be further off than the reference is by luck."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.compare import admits
from tools.judge.conditioning import conditioned_limit
from tools.judge.diagnose import diagnose
from tools.judge.errors import measure
from tools.judge.inputs import OWN
from tools.judge.timed_outputs import TimedOutputs
from tools.judge.trial import Trial

SOLVE = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return torch.linalg.solve(a, b)


def get_inputs():
    return [torch.randn(200, 32, 32), torch.randn(200, 32, 4)]
"""

STEPS = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.round(x / 0.037) * 0.037


def get_inputs():
    return [torch.randn(200, 300)]
"""

LINEAR = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(64, 64)

    def forward(self, x):
        return self.linear(x)


def get_inputs():
    return [torch.randn(64, 64)]
"""

PRODUCT = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, a, b):
        return a @ b


def get_inputs():
    return [torch.randn(64, 64), torch.randn(64, 64)]
"""


@pytest.fixture(scope="module")
def bench() -> Iterator[Bench]:
    made = Bench(SOLVE, "full", "cpu")
    yield made
    made.close()


def drawn(bench: Bench, seed: int) -> Trial:
    """A trial on a draw that is known here."""
    generator = torch.Generator().manual_seed(seed)
    tensors = [torch.randn(t.shape, generator=generator) for t in bench.trial(OWN, 0).tensors]
    return bench.compute(OWN, seed, bench.trial(OWN, 0).spec, tensors)


def eliminated(a: torch.Tensor, b: torch.Tensor, *, bits: int = 24) -> torch.Tensor:
    """Elimination with partial pivoting, as a kernel has it; of `bits` the operands of its products."""
    a, b, rows = a.clone(), b.clone(), torch.arange(a.size(0))

    def short(t: torch.Tensor) -> torch.Tensor:
        mantissa, exponent = torch.frexp(t)
        return torch.ldexp(torch.round(mantissa * 2.0**bits) / 2.0**bits, exponent)

    for k in range(a.size(1)):
        pivot = a[:, k:, k].abs().argmax(1) + k
        for t in (a, b):
            t[rows, pivot], t[:, k] = t[:, k].clone(), t[rows, pivot].clone()
        factor = short(a[:, k + 1 :, k] / a[:, k, k, None])[:, :, None]
        a[:, k + 1 :] -= factor * short(a[:, None, k])
        b[:, k + 1 :] -= factor * short(b[:, None, k])
    for k in reversed(range(a.size(1))):
        known = (short(a[:, k, k + 1 :, None]) * short(b[:, k + 1 :])).sum(1)
        b[:, k] = (b[:, k] - known) / a[:, k, k, None]
    return b


def test_elimination_passes_on_every_draw_and_is_told_from_one_of_ten_bits(bench: Bench):
    for seed in range(6):
        trial = drawn(bench, seed)
        output = eliminated(*trial.tensors)
        assert admits(bench, trial, 0, output, None), seed
        limit = conditioned_limit(bench, trial, 0)
        assert limit is not None, seed
        assert limit.share(measure(output, trial.oracle[0])) < 1, seed
        assert limit.share(measure(eliminated(*trial.tensors, bits=11), trial.oracle[0])) > 4, seed


def test_its_timed_outputs_are_right_whether_or_not_one_value_outweighs_the_others(bench: Bench):
    outputs = TimedOutputs(bench, None)
    for seed in range(6):
        for outlier in (False, True):
            trial = drawn(bench, seed)
            if outlier:
                trial.tensors[0][3, 4, 5] = 1e3
            mine, theirs = eliminated(*trial.tensors), torch.linalg.solve(*trial.tensors)
            outputs.verify([mine], [theirs], lambda t=trial: t.tensors, None, outlier=outlier)


def test_where_nothing_is_amplified_nothing_more_is_allowed():
    bench = Bench(PRODUCT, "full", "cpu")
    try:
        assert conditioned_limit(bench, bench.trial(OWN, 0), 0) is None
    finally:
        bench.close()


def test_a_step_that_last_bits_decide_about_widens_no_limit():
    """Some inputs lie where a last bit takes them over an edge; nothing else may be off by a step."""
    bench = Bench(STEPS, "full", "cpu")
    try:
        trial = bench.trial(OWN, 0)
        tensors = [trial.tensors[0].clone()]
        for k in range(60):
            tensors[0].view(-1)[k] = (k % 9 + 0.5) * 0.037
        edged = bench.compute(OWN, trial.seed, trial.spec, tensors)
        assert conditioned_limit(bench, edged, 0) is None
        output = (tensors[0].bfloat16().double() / 0.037).round() * 0.037
        assert not admits(bench, edged, 0, output.float(), None)
    finally:
        bench.close()


def test_weights_are_those_of_the_trial():
    """With others in their place everything would hang on last bits."""
    bench = Bench(LINEAR, "full", "cpu")
    try:
        changed = bench.problem.build(bench.seed)
        with torch.no_grad():
            changed.linear.weight.neg_()  # pyright: ignore[reportAttributeAccessIssue]
        first = bench.trial(OWN, 0)
        trial = bench.compute(OWN, first.seed, first.spec, first.tensors, changed)
        assert trial.model is not None
        assert conditioned_limit(bench, trial, 0) is None
        assert not admits(bench, trial, 0, first.reference[0], None)
    finally:
        bench.close()


def test_no_relation_is_told_that_the_large_elements_alone_would_bear_out():
    """One system of many is wrong, along its own nearly singular direction; the others are right as they are."""
    right = torch.randn(200, 32, 4, dtype=torch.float64)
    right[17] *= 1e5
    output = right.clone()
    output[17] *= 1.7
    assert [f.code for f in diagnose(output, right, 10.0, [])] == ["one_channel"]
    scattered = right.clone()
    scattered[17, :, 1] *= -1
    assert [f.code for f in diagnose(scattered, right, 1e4, [])] == ["one_channel"]
