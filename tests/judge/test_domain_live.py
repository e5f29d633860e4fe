"""Problems whose inputs are more than numbers: the judge tries no others on them, and does not end with them."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterator

import pytest
import torch

from problems import ProblemError
from tools.judge import inputs as kinds
from tools.judge import variants
from tools.judge.bench import Bench
from tools.judge.check import OWN_TRIALS, Rules
from tools.judge.soundness import examine
from tools.judge.trial import Trial

PROBLEM = """
import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    def forward(self, *args):
        {first}, *rest = args
        return {forward}


def get_inputs():
    a = torch.randn(4, 16, 16)
    return [{inputs}]
"""

BCE = PROBLEM.format(
    first="p",
    forward="F.binary_cross_entropy(p, *rest)",
    inputs="torch.rand(64, 30), torch.randint(0, 2, (64, 30)).float()",
)
CHOLESKY = PROBLEM.format(first="x", forward="torch.linalg.cholesky(x)", inputs="a @ a.mT + torch.eye(16)")
INVERSE = PROBLEM.format(first="x", forward="torch.linalg.inv(x)", inputs="a + 8 * torch.eye(16)")
NLL = PROBLEM.format(
    first="x", forward="F.gaussian_nll_loss(x, *rest)", inputs="torch.randn(99), torch.randn(99), torch.rand(99) + 0.1"
)
LOOKUP = PROBLEM.format(
    first="edges",
    forward="torch.searchsorted(edges, *rest)",
    inputs="torch.cumsum(torch.rand(200), 0), torch.rand(500) * 100",
)
ROOT = PROBLEM.format(first="x", forward="x.sqrt()", inputs="torch.rand(400)")
SIZES = PROBLEM.format(first="x", forward="x.abs()", inputs="torch.rand(400)")
NAN_TO_NUM = PROBLEM.format(
    first="x",
    forward="torch.nan_to_num(x, nan=0.5)",
    inputs="torch.randn(64, 64).index_fill_(0, torch.tensor(3), float('inf'))",
)
LOG_CLAMPED = PROBLEM.format(
    first="x", forward="torch.log(x).clamp(min=torch.finfo(x.dtype).min)", inputs="torch.relu(torch.randn(64, 200))"
)
NONZERO = PROBLEM.format(
    first="x", forward="(torch.nonzero(x > 1.0), torch.masked_select(x, x > 1.0))", inputs="torch.randn(100, 200)"
)


@contextlib.contextmanager
def judged(source: str) -> Generator[Bench]:
    bench = Bench(source, "full", "cpu")
    try:
        yield bench
    finally:
        bench.close()


def special(bench: Bench) -> Iterator[tuple[str, Trial]]:
    for position, kind in enumerate(kinds.SPECIAL):
        yield kind, bench.trial(kind, OWN_TRIALS + position)


@pytest.mark.parametrize("source", [BCE, CHOLESKY, INVERSE, NLL, NAN_TO_NUM, LOG_CLAMPED])
def test_a_reference_that_refuses_values_is_judged_on_those_that_it_takes(source: str):
    with judged(source) as bench:
        assert any(trial.sound for _, trial in special(bench))
        assert examine(bench, Rules()).judgeable
        assert bench.oracle == "fp64"


def test_what_the_reference_refuses_is_no_trial():
    with judged(INVERSE) as bench:
        zero = [torch.zeros_like(t) for t in bench.trial(kinds.OWN, 0).tensors]
        trial = bench.compute("sparse", 1, bench.trial(kinds.OWN, 0).spec, zero)
        assert trial.refused
        assert not trial.sound
        with pytest.raises(Exception, match="singular"):
            bench.compute(kinds.OWN, 1, trial.spec, zero)


def test_edges_stay_sorted_in_all_that_is_tried():
    with judged(LOOKUP) as bench:
        tried = [trial for _, trial in special(bench)]
        tried.extend(
            t for i in range(3) if (t := variants.one_element(bench, bench.trial(kinds.OWN, i))[0]) is not None
        )
        assert len(tried) > len(kinds.SPECIAL)
        assert all(bool((t.tensors[0].diff() > 0).all()) for t in tried)
        assert sum(not torch.equal(t.tensors[0], t.tensors[0].sort().values * 0 + t.tensors[0][0]) for t in tried)


def test_a_range_is_kept_where_the_reference_is_lost_beyond_it_and_only_there():
    with judged(ROOT) as lost, judged(SIZES) as fine:
        assert all(bool((trial.tensors[0] >= 0).all()) for _, trial in special(lost))
        assert bool((fine.trial("negated", 9).tensors[0] <= 0).all())


def test_an_element_that_can_be_changed_is_changed():
    with judged(BCE) as bench:
        base = bench.trial(kinds.OWN, 0)
        trial, where = variants.one_element(bench, base)
        assert trial is not None
        assert where
        assert sum(int((a != b).sum()) for a, b in zip(trial.tensors, base.tensors, strict=True)) == 1


def test_an_outlier_is_for_inputs_that_take_one():
    with judged(BCE) as shares, judged(SIZES) as sizes, judged(NLL) as both:
        assert [variants.takes_outlier(shares, i) for i in range(2)] == [False, False]
        assert variants.takes_outlier(sizes, 0)
        assert [variants.takes_outlier(both, i) for i in range(3)] == [True, True, True]


@pytest.mark.parametrize("source", [NAN_TO_NUM, LOG_CLAMPED])
def test_the_largest_number_of_a_type_is_that_of_the_references_type(source: str):
    with judged(source) as bench:
        trial = bench.trial(kinds.OWN, 0)
        assert trial.sound
        assert float(trial.reference[0].abs().max()) == torch.finfo(torch.float32).max
        assert trial.errors[0].scale < 1e9
        wrong = torch.zeros_like(trial.reference[0])
        assert trial.truth.measured([wrong])[0].unsound > 0


def test_shapes_that_hang_on_values_are_the_problems_fault():
    with pytest.raises(ProblemError, match="shapes and dtypes must stay the same"), judged(NONZERO) as bench:
        for index in range(OWN_TRIALS):
            bench.trial(kinds.OWN, index)
