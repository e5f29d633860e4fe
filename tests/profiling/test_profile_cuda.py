"""`profile_kernel` on a GPU: a candidate's kernels by CUPTI and, where the counters may be read, by Nsight Compute."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import ProblemSpec
from prompts import render
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.profiling.metrics import METRICS
from tools.profiling.ncu import find_ncu
from tools.profiling.records import Profile
from tools.reports import KernelReport, ProfileReport
from tools.toolbox import Toolbox

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x.t().contiguous()

def get_inputs():
    return [torch.randn(4096, 4096)]

def get_init_inputs():
    return []
"""

SOURCE = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cuda_source = r'''
#include <torch/extension.h>
#include <c10/cuda/CUDAStream.h>

__global__ void turn(const float* x, float* y, int n) {
    __shared__ float tile[32][32 + PAD];
    int column = blockIdx.x * 32 + threadIdx.x, row = blockIdx.y * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) tile[threadIdx.y + k][threadIdx.x] = x[(long long)(row + k) * n + column];
    __syncthreads();
    column = blockIdx.y * 32 + threadIdx.x;
    row = blockIdx.x * 32 + threadIdx.y;
    for (int k = 0; k < 32; k += 8) y[(long long)(row + k) * n + column] = tile[threadIdx.x][threadIdx.y + k];
}

torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    int n = x.size(0);
    turn<<<dim3(n / 32, n / 32), dim3(32, 8), 0, c10::cuda::getCurrentCUDAStream()>>>(
        x.data_ptr<float>(), y.data_ptr<float>(), n);
    return y;
}
'''
ext = load_inline(name="turn_ext", cpp_sources="torch::Tensor f(torch::Tensor x);", cuda_sources=cuda_source,
                  functions=["f"])

class ModelNew(nn.Module):
    def forward(self, x):
        return BODY
"""


def source(pad: int = 1, body: str = "ext.f(x)") -> str:
    return SOURCE.replace("PAD", str(pad)).replace("BODY", body)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    settings = EvaluatorSettings(device="cuda", cache_dir=tmp_path_factory.mktemp("cache"))
    with Evaluator(ProblemSpec(name="turn", source=PROBLEM, origin="path"), settings) as evaluator:
        evaluator.facts()
        yield evaluator


@pytest.fixture
def toolbox(evaluator: Evaluator, tmp_path: Path) -> Toolbox:
    return Toolbox(evaluator, tmp_path / "kernels")


def profiled(toolbox: Toolbox, text: str) -> tuple[Profile, str]:
    built = toolbox.call("compile_kernel", json.dumps({"source": text}))
    assert isinstance(built, KernelReport)
    record = toolbox.call("profile_kernel", json.dumps({"id": built.kernel}))
    assert isinstance(record, ProfileReport), record
    shown = render(record.kind, report=record)
    print(shown)
    return record.profile, shown


def test_the_candidates_kernel_is_found_with_its_launch_shape(toolbox: Toolbox):
    profile, text = profiled(toolbox, source())
    assert profile.trouble is None
    turn = profile.kernels[0]
    assert "turn" in turn.name
    assert turn.own
    assert turn.share > 0.9
    assert (turn.grid, turn.block) == ([128, 128, 1], [32, 8, 1])
    assert turn.us > 1
    assert profile.call_us is not None and profile.call_us >= turn.us * 0.9
    assert profile.evidence is not None and profile.evidence.device.startswith("cuda")
    assert "What limits it" in text
    assert profile.seconds < profile.most_seconds


def test_counters_are_there_or_it_is_said_why_not(toolbox: Toolbox):
    profile, text = profiled(toolbox, source(pad=0))
    if find_ncu(None) is None:
        assert profile.unavailable is not None and profile.unavailable.code == "not_installed"
        return
    if profile.unavailable is not None:
        # The reasons that are the machine's own: everything else is a fault of ours.
        assert profile.unavailable.code in ("no_permission", "in_use"), profile.unavailable
        assert "ERR_NVGPUCTRPERM" in text
        return
    counters = profile.counters[0]
    assert "turn" in counters.name
    assert len(profile.counters) == 1, "library kernels are left out"
    missing = set(METRICS) - set(counters.metrics)
    assert len(missing) <= 4, missing
    assert counters.stalls
    assert counters.occupancy_limited_by
    # 32 rows of one column of a tile without padding are in one bank.
    assert counters.metrics["bank_conflicts_load"] > 1e6
    assert profile.limit is not None and profile.limit.code == "bank_conflicts"


def test_padding_takes_the_conflicts_away(toolbox: Toolbox):
    profile, _ = profiled(toolbox, source(pad=1))
    if profile.counters:
        assert profile.counters[0].metrics["bank_conflicts_load"] < 1e5


def test_time_in_a_library_is_named_as_such(toolbox: Toolbox):
    profile, _ = profiled(toolbox, source(body="ext.f(x) + 0 * (x @ x)"))
    assert profile.limit is not None and profile.limit.code == "library_time"
    assert any(not k.own for k in profile.kernels)


def test_a_candidate_that_fails_on_the_device_ends_nothing_else(toolbox: Toolbox):
    broken = source().replace("y[(long long)(row + k) * n + column]", "y[(1LL << 50) + row]")
    profile, _ = profiled(toolbox, broken)
    assert profile.trouble is not None
    again, _ = profiled(toolbox, source())
    assert again.trouble is None
