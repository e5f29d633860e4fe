"""What only a GPU shows of a worker: device memory that is shared, guarded and poisoned, and the names of kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import ProblemSpec
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import CorrectnessResult, TimingResult, Verdict

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)

def get_inputs():
    return [torch.randn(4096, 1000)]

def get_init_inputs():
    return []
"""

CANDIDATE = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum(const float* x, float* y, int columns) {
    __shared__ float part[32];
    float s = 0.f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) s += x[(long long)blockIdx.x * columns + c];
    for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    __syncthreads();
    if (threadIdx.x == 0) {
        float total = 0.f;
        for (int i = 0; i < SUMMED; ++i) total += part[i];
        y[blockIdx.x + SHIFT] = total;
    }
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    row_sum<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), (int)x.size(1));
    return y;
}
'''
declaration = "torch::Tensor run(torch::Tensor x);"
ext = load_inline(name="rows", cpp_sources=declaration, cuda_sources=source, functions=["run"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
"""


def candidate(*, summed: int = 8, shift: int = 0) -> str:
    return CANDIDATE.replace("SUMMED", str(summed)).replace("SHIFT", str(shift))


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    settings = EvaluatorSettings(device="cuda", cache_dir=tmp_path_factory.mktemp("cache"))
    with Evaluator(ProblemSpec(name="rows", source=PROBLEM, origin="path"), settings) as made:
        yield made


def judge(evaluator: Evaluator, source: str, folder: Path) -> tuple[CorrectnessResult, TimingResult | None]:
    build = evaluator.build(source, folder)
    assert build.ok, build.diagnostics
    checked = evaluator.check(source, build)
    timed = evaluator.time(source, build) if checked.passed else None
    return checked, timed if isinstance(timed, TimingResult) else None


def test_an_honest_kernel_is_correct_and_timed_and_its_time_is_its_own(evaluator: Evaluator, tmp_path: Path) -> None:
    checked, timed = judge(evaluator, candidate(), tmp_path)
    assert checked.verdict is Verdict.CORRECT, checked.findings
    assert checked.own_kernel_share is not None and checked.own_kernel_share > 0.9
    assert timed is not None and timed.candidate_us.value > 0


def test_unwritten_shared_memory_is_seen(evaluator: Evaluator, tmp_path: Path) -> None:
    checked, _ = judge(evaluator, candidate(summed=32), tmp_path)
    assert checked.verdict in (Verdict.NONDETERMINISTIC, Verdict.WRONG_RESULT)


def test_a_write_behind_the_end_is_seen(evaluator: Evaluator, tmp_path: Path) -> None:
    checked, _ = judge(evaluator, candidate(shift=1), tmp_path)
    assert checked.verdict is Verdict.WRONG_RESULT
    assert checked.findings[0].code == "out_of_bounds_write"
    assert checked.findings[0].observed["offset"] == 4096 * 4


def test_a_second_candidate_finds_a_clean_process(evaluator: Evaluator, tmp_path: Path) -> None:
    broken, _ = judge(evaluator, candidate().replace("y[blockIdx.x", "y[1000000000L + blockIdx.x"), tmp_path / "a")
    assert broken.verdict in (Verdict.RUNTIME_ERROR, Verdict.WRONG_RESULT)
    checked, _ = judge(evaluator, candidate(), tmp_path / "b")
    assert checked.verdict is Verdict.CORRECT
