"""The fp64 oracle where memory is short: in slices where rows are independent, which is tried, else in fp32."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from tools.judge import oracle as oracle_module
from tools.judge.bench import Bench
from tools.judge.oracle import DoubleOracle, NoDouble
from tools.judge.reference import Reference, oracle_model, run_oracle

# In fp64 it raises what a device without room raises; in its own precision it fits.
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 16)
        self.norm = nn.BatchNorm1d(16)

    def forward(self, x, y):
        if x.dtype is torch.float64 and x.shape[0] > {fits}:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 34.00 GiB.")
        return {forward}


def get_inputs():
    return [torch.randn(64, 16), {second}]
"""


def problem(forward: str, *, fits: int = 10, second: str = "torch.randn(64, 16)") -> str:
    return PROBLEM.format(forward=forward, fits=fits, second=second)


def evaluated(
    forward: str, second: str = "torch.randn(64, 16)", fits: int = 10
) -> tuple[DoubleOracle, list[torch.Tensor], list[torch.Tensor]]:
    """The oracle that was made do, what it gave, and what it gives with room enough."""
    found, roomy = (Reference(problem(forward, fits=n, second=second), "full", "cpu") for n in (fits, 1000))
    spec, tensors = found.inputs(3)
    model = found.build(3)
    outputs = found.run(model, spec, tensors)[1]
    double = DoubleOracle(found)
    given = double.run(oracle_model(model), spec, tensors, reference=outputs)
    return double, given, run_oracle(roomy, oracle_model(roomy.build(3)), spec, tensors, None)


@pytest.mark.parametrize(
    ("forward", "second"),
    [
        ("self.linear(x) * torch.tanh(y)", "torch.randn(64, 16)"),
        (
            "torch.softmax(x @ y.transpose(1, 2), -1) if x.dim() == 3 else torch.softmax(x * y, -1)",
            "torch.randn(64, 16)",
        ),
        ("(self.linear(x), (x + y).argmax(1))", "torch.randn(64, 16)"),
        ("torch.where(y[:, None] > 4, x, -x)", "torch.randint(10, (64,))"),
        ("self.linear(x)[:, y]", "torch.randint(16, (5,))"),
    ],
)
def test_independent_rows_are_evaluated_in_slices_with_the_same_result(forward: str, second: str):
    double, given, whole = evaluated(forward, second)
    assert (double.way, double.name, double.rows) == ("slices", "fp64", 8)
    for a, b in zip(given, whole, strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        assert float((a - b).abs().max()) <= 1e-12


@pytest.mark.parametrize(
    ("forward", "second"),
    [
        ("self.norm(x) + y", "torch.randn(64, 16)"),
        ("x - x.mean(0) + y", "torch.randn(64, 16)"),
        ("x.cumsum(0) + y", "torch.randn(64, 16)"),
        ("x.flip(0) + y", "torch.randn(64, 16)"),
        ("x - 1e-3 * x[:1] + y", "torch.randn(64, 16)"),
        ("torch.softmax(x, 0) + y", "torch.randn(64, 16)"),
        ("x + y + torch.arange(64.0)[: x.shape[0], None]", "torch.randn(64, 16)"),
        ("(x + y).sum()", "torch.randn(64, 16)"),
        ("x.t() @ y", "torch.randn(64, 16)"),
        ("self.linear(x) * y", "torch.randn(16)"),
        ("(x * y).reshape(2, 32, 16).sum(1)", "torch.randn(64, 16)"),
    ],
)
def test_rows_that_depend_on_each_other_are_not_taken_apart(forward: str, second: str):
    with pytest.raises(NoDouble):
        evaluated(forward, second)


def test_one_row_at_a_time_is_held_against_the_reference():
    double, given, whole = evaluated("self.linear(x) * y", fits=1)
    assert double.rows == 1
    assert float((given[0] - whole[0]).abs().max()) <= 1e-12
    with pytest.raises(NoDouble):
        evaluated("self.linear(x - x.mean(0)) * y", fits=1)


def test_without_a_reference_to_hold_them_against_slices_are_not_begun_with():
    found = Reference(problem("x * y"), "full", "cpu")
    spec, tensors = found.inputs(3)
    model = oracle_model(found.build(3))
    with pytest.raises(NoDouble):
        DoubleOracle(found).run(model, spec, tensors)
    double = DoubleOracle(found)
    reference = found.run(found.build(3), spec, tensors)[1]
    first = double.run(model, spec, tensors, reference=reference)
    again = double.run(model, spec, tensors, prepare=lambda t: t.double() * 2)
    assert torch.equal(again[0], first[0] * 4)


def test_what_is_no_lack_of_memory_is_raised():
    found = Reference(problem("torch.linalg.inv(x * y)"), "full", "cpu")
    spec, tensors = found.inputs(3)
    with pytest.raises(RuntimeError, match="square"):
        DoubleOracle(found).run(oracle_model(found.build(3)), spec, [t[:4] for t in tensors])


@pytest.mark.parametrize(
    ("forward", "said"),
    [("self.linear(x) * y", "fp64"), ("self.norm(x) + y", "fp32")],
)
def test_the_judge_says_what_it_held_the_outputs_against(forward: str, said: str):
    bench = Bench(problem(forward), "full", "cpu")
    trial = bench.trial("own", 0)
    assert bench.oracle == said
    assert trial.oracle[0].dtype is (torch.float64 if said == "fp64" else torch.float32)
    assert trial.sound
    # Precision classes need an oracle finer than what they are to tell apart.
    assert bool(bench.floor.classes) is (said == "fp64")
    bench.close()


def test_the_strict_fp32_oracle_has_the_weights_of_its_trial():
    bench = Bench(problem("self.norm(x) + self.linear(y)"), "full", "cpu")
    base = bench.trial("own", 0)
    other = bench.compute("weights", base.seed, base.spec, base.tensors, bench.problem.build(bench.seed + 1))
    assert other.sound
    assert not torch.equal(other.oracle[0], base.oracle[0])
    bench.close()


def test_what_can_not_be_had_is_not_tried_again():
    found = Reference(problem("(x + y).sum()"), "full", "cpu")
    spec, tensors = found.inputs(3)
    double = DoubleOracle(found)
    for _ in range(2):
        # On this device itself there is no other host to go to.
        with pytest.raises(NoDouble):
            double.run(oracle_model(found.build(3)), spec, tensors)
        assert (double.way, double.name) == ("none", "fp32")


def test_the_host_is_asked_where_it_has_room_and_is_quick_enough(monkeypatch: pytest.MonkeyPatch):
    """From a device that holds no data, as far as this machine has one besides the CPU."""
    elsewhere = Reference(problem("(x + y).sum()", fits=1000), "full", "meta")
    here = Reference(problem("(x + y).sum()", fits=1000), "full", "cpu")
    spec, tensors = here.inputs(3)
    model = oracle_model(here.build(3))

    def on_host() -> DoubleOracle:
        double = DoubleOracle(elsewhere)
        double.way = "host"
        return double

    double = on_host()
    (truth,) = double.run(model, spec, tensors)
    assert (truth.dtype, truth.device.type, double.name) == (torch.float64, "meta", "fp64_cpu")
    for name, value in (("available_memory", lambda: 1000), ("HOST_SECONDS", 0.0)):
        with monkeypatch.context() as patch:
            patch.setattr(oracle_module, name, value)
            double = on_host()
            with pytest.raises(NoDouble):
                double.run(model, spec, tensors)
            assert double.name == "fp32"


@pytest.mark.gpu
@pytest.mark.parametrize(("forward", "way"), [("torch.tanh(x) * y.exp()", "slices"), ("x - x.mean(0) + y", "host")])
def test_a_device_without_room_goes_on_in_slices_or_on_the_host(forward: str, way: str):
    source = problem(forward, fits=1 << 40).replace("(64, 16)", "(1 << 22, 16)")
    found = Reference(source, "full", "cuda")
    spec, tensors = found.inputs(3)
    model = found.build(3)
    reference = found.run(model, spec, tensors)[1]
    size = reference[0].numel() * 8
    torch.cuda.empty_cache()
    total = torch.cuda.mem_get_info()[1]
    # Room for the result and a half, and not for two doubled inputs beside it.
    torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + 2.5 * size) / total)
    try:
        double = DoubleOracle(found)
        (truth,) = double.run(oracle_model(model), spec, tensors, reference=reference)
    finally:
        torch.cuda.set_per_process_memory_fraction(1.0)
    assert double.way == way
    assert float((truth - reference[0]).abs().max()) < 1e-4


REALLY = """
import resource, sys
sys.path.insert(0, {root!r})
import torch
source = '''
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(torch.exp(-x.abs()) + torch.sqrt(x.abs() + 1) * torch.sigmoid(x))

def get_inputs():
    return [torch.rand(256, 1 << 14)]
'''
torch.set_num_threads(1)
from tools.judge.oracle import DoubleOracle
from tools.judge.reference import Reference, oracle_model
problem = Reference(source, "full", "cpu")
spec, tensors = problem.inputs(1)
model = problem.build(1)
reference = problem.run(model, spec, tensors)[1]
double, exact = DoubleOracle(problem), oracle_model(model)
# The result takes 32 MiB, and each step of an evaluation of the whole as much again.
used = int(next(l for l in open("/proc/self/status") if l.startswith("VmData")).split()[1]) << 10
resource.setrlimit(resource.RLIMIT_DATA, (used + {mib} * (1 << 20), resource.RLIM_INFINITY))
(truth,) = double.run(exact, spec, tensors, reference=reference)
resource.setrlimit(resource.RLIMIT_DATA, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
print(double.way, double.rows, float((truth - reference[0]).abs().max()))
"""


@pytest.mark.parametrize(("mib", "way"), [(2000, "whole"), (90, "slices")])
def test_a_process_that_really_has_no_more_memory_goes_on_in_slices(mib: int, way: str):
    script = REALLY.format(root=str(Path(__file__).parents[2]), mib=mib)
    # Every tensor is mapped for itself, so that what is freed is free: what a heap keeps back differs from run to run.
    environment = {**os.environ, "MALLOC_MMAP_THRESHOLD_": str(64 << 10)}
    command = [sys.executable, "-c", script]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    found, rows, error = done.stdout.split()[-3:]
    assert (found, rows == "0") == (way, way == "whole")
    assert 0 < float(error) < 1e-6
