"""Where a module overflows its type an honest kernel does so too, and one that hides it is wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.compare import admits
from tools.judge.diagnose import diagnose
from tools.judge.errors import measure, worst_element, wrong_elements
from tools.judge.inputs import OWN
from tools.judge.oracle import saturated

PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return {forward}


def get_inputs():
    return [{inputs}]
"""

Kernel = Callable[[torch.Tensor], torch.Tensor]

# What the module computes, on what, and the same as a kernel has it.
OVERFLOWING: dict[str, tuple[str, str, Kernel]] = {
    "exp": ("torch.exp(x)", "torch.randn(200, 300) * 30", lambda x: x.double().exp().float()),
    "half_square": ("x * x", "(torch.randn(200, 300) * 80).half()", lambda x: x.float().square().half()),
    "half_row_sum": ("x.sum(1)", "(torch.randn(400, 300) * 3000).half()", lambda x: x.float().sum(1).half()),
    "negative": ("-torch.exp(x)", "torch.randn(200, 300) * 30", lambda x: -x.double().exp().float()),
}


@pytest.fixture(params=OVERFLOWING, scope="module")
def overflowing(request: pytest.FixtureRequest) -> Iterator[tuple[Bench, Kernel]]:
    forward, inputs, kernel = OVERFLOWING[request.param]
    bench = Bench(PROBLEM.format(forward=forward, inputs=inputs), "full", "cpu")
    yield bench, kernel
    bench.close()


def test_a_kernel_that_overflows_as_the_module_does_passes(overflowing: tuple[Bench, Kernel]):
    bench, kernel = overflowing
    trial = bench.trial(OWN, 0)
    assert trial.sound
    output = kernel(trial.tensors[0])
    assert 10 < int(torch.isinf(output).sum()) < output.numel()
    assert admits(bench, trial, 0, output, None)


def test_one_that_clamps_or_flips_the_sign_of_infinity_does_not(overflowing: tuple[Bench, Kernel]):
    bench, kernel = overflowing
    trial = bench.trial(OWN, 0)
    output = kernel(trial.tensors[0])
    assert not admits(bench, trial, 0, torch.nan_to_num(output), None)
    assert not admits(bench, trial, 0, torch.where(torch.isinf(output), -output, output), None)
    assert not admits(bench, trial, 0, torch.where(torch.isinf(output), torch.nan, output), None)
    clamped = diagnose(torch.nan_to_num(output), trial.oracle[0], 1e30, [])
    assert clamped[0].code == "finite_output"
    assert clamped[0].observed["finite"] == int(torch.isinf(trial.oracle[0]).sum())


def test_infinity_where_the_module_has_the_largest_number_is_wrong():
    most = torch.finfo(torch.float32).max
    bench = Bench(
        PROBLEM.format(forward="torch.nan_to_num(torch.exp(x))", inputs="torch.randn(200, 300) * 30"), "full", "cpu"
    )
    try:
        trial = bench.trial(OWN, 0)
        right = trial.tensors[0].double().exp().float()
        assert bool(torch.isinf(right).any())
        assert admits(bench, trial, 0, right.clamp(max=most), None)
        assert not admits(bench, trial, 0, right, None)
    finally:
        bench.close()


def test_what_is_beyond_a_type_becomes_what_the_reference_has_there():
    most = torch.finfo(torch.float16).max
    truth = torch.tensor([1e5, 1e5, -1e5, -1e5, 3.0, 1e5, 65530.0], dtype=torch.float64)
    reference = torch.tensor([torch.inf, most, -torch.inf, torch.inf, torch.inf, torch.nan, torch.inf]).half()
    expected = torch.tensor([torch.inf, most, -torch.inf, -most, 3.0, most, 65530.0], dtype=torch.float64)
    assert torch.equal(saturated(truth, reference), expected)


def test_at_the_edge_of_a_type_the_last_bit_may_go_either_way():
    """In a product of many half-precision elements a few lie there, and no two kernels add in one order."""
    most = torch.finfo(torch.float16).max
    truth = torch.tensor([3.0, 65530.0, 65450.0, -65530.0, 1e9], dtype=torch.float64)
    truth[4] = torch.inf
    for edge in (torch.inf, most, 65472.0):
        output = torch.tensor([3.0, edge, edge, -edge, torch.inf]).half()
        assert measure(output, truth).unsound == 0
        assert wrong_elements(output, truth, 1e-3) == 0
        assert diagnose(output, truth, 1e-3, []) == []
    for wrong in (-torch.inf, torch.nan, 60000.0, 0.0):
        output = torch.tensor([3.0, wrong, 65440.0, -torch.inf, torch.inf]).half()
        assert measure(output, truth).unsound == 1
        assert wrong_elements(output, truth, 1e-3) == 1
        assert worst_element(output, truth) == [1]
    just = torch.tensor([most, 1.0], dtype=torch.float64)
    assert measure(torch.tensor([torch.inf, 1.0]).half(), just).unsound == 1


def test_a_half_precision_product_that_overflows_in_part_passes_in_another_order():
    problem = PROBLEM.format(forward="x @ x.t()", inputs="(torch.randn(600, 512) * 100).half()")
    bench = Bench(problem, "full", "cpu")
    try:
        trial = bench.trial(OWN, 0)
        assert trial.sound
        x = trial.tensors[0].float()
        output = sum((x[:, k : k + 64] @ x[:, k : k + 64].t() for k in range(448, -1, -64)), torch.zeros(())).half()
        assert int(torch.isinf(output).sum()) > 1000
        assert admits(bench, trial, 0, output, None)
    finally:
        bench.close()
