"""`check_memory` on a GPU: each of compute-sanitizer's tools and our poison finds its kind, on its line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import ProblemSpec
from prompts import render
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.memcheck.records import MemoryCheck, MemoryFinding
from tools.memcheck.runtimes import find_compute_sanitizer
from tools.reports import KernelReport, MemoryReport
from tools.toolbox import Toolbox

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(find_compute_sanitizer(None) is None, reason="needs compute-sanitizer"),
]

PROBLEM = """
import torch
import torch.nn as nn

rows = 4096
SMALL = {"rows": 64}

class Model(nn.Module):
    def forward(self, x):
        return x.sum(dim=-1)

def get_inputs():
    return [torch.randn(rows, 1000)]

def get_init_inputs():
    return []
"""

SOURCE = """
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r'''
#include <torch/extension.h>
#include <cuda_runtime.h>

__global__ void row_sum(const float* x, float* y, const float* spare, int columns) {
    __shared__ float part[32];
    float s = 0.f;
    for (int c = threadIdx.x; c < columns; c += blockDim.x) s += x[(long long)blockIdx.x * columns + c];
    for (int o = 16; o > 0; o /= 2) s += __shfl_down_sync(~0u, s, o);
    if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = s;
    BARRIER
    if (threadIdx.x == 0) {
        float total = 0.f;
        for (int i = 0; i < SUMMED; ++i) total += part[i];
        total += SPARE;
        y[blockIdx.x + SHIFT] = total;
    }
}

torch::Tensor run(torch::Tensor x) {
    auto y = torch::empty({x.size(0)}, x.options());
    auto spare = torch::empty({1000}, x.options());
    row_sum<<<x.size(0), 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), spare.data_ptr<float>(), (int)x.size(1));
    return y;
}
'''
ext = load_inline(name="rows", cpp_sources="torch::Tensor run(torch::Tensor x);", cuda_sources=source,
                  functions=["run"])

class ModelNew(nn.Module):
    def forward(self, x):
        return ext.run(x)
"""


def source(barrier: str = "__syncthreads();", summed: int = 8, shift: int = 0, spare: str = "0.f") -> str:
    text = SOURCE.replace("BARRIER", barrier).replace("SUMMED", str(summed))
    return text.replace("SHIFT", str(shift)).replace("SPARE", spare)


@pytest.fixture(scope="module")
def evaluator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Evaluator]:
    settings = EvaluatorSettings(device="cuda", cache_dir=tmp_path_factory.mktemp("cache"))
    spec = ProblemSpec(name="rows", source=PROBLEM, origin="path", sizes=("full", "small"))
    with Evaluator(spec, settings) as evaluator:
        yield evaluator


@pytest.fixture
def toolbox(evaluator: Evaluator, tmp_path: Path) -> Toolbox:
    return Toolbox(evaluator, tmp_path / "kernels")


def checked(toolbox: Toolbox, text: str) -> MemoryCheck:
    built = toolbox.call("compile_kernel", json.dumps({"source": text}))
    assert isinstance(built, KernelReport)
    record = toolbox.call("check_memory", json.dumps({"id": built.kernel}))
    assert isinstance(record, MemoryReport), record
    print(render(record.kind, report=record))
    memory = record.memory
    assert {r.ended for r in memory.runs} <= {"clean", "found"}, memory.runs
    assert memory.seconds < memory.most_seconds
    return memory


def by(memory: MemoryCheck, check: str) -> MemoryFinding:
    return next(f for f in memory.findings if f.check == check)


def test_an_honest_kernel_is_clean(toolbox: Toolbox):
    memory = checked(toolbox, source())
    assert memory.findings == []
    assert (memory.size, memory.fits_small) == ("small", True)
    assert [r.check for r in memory.runs] == ["memcheck", "racecheck", "initcheck", "synccheck", "poison"]


def test_memcheck_finds_a_write_behind_the_end(toolbox: Toolbox):
    finding = by(checked(toolbox, source(shift=1)), "memcheck")
    assert finding.kind == "global_write"
    assert finding.source_line == "y[blockIdx.x + 1] = total;"


def test_racecheck_finds_a_missing_barrier(toolbox: Toolbox):
    finding = by(checked(toolbox, source(barrier="")), "racecheck")
    assert finding.kind in ("race", "race_warning")
    lines = f"{finding.source_line} {finding.other_source_line}"
    assert "part[threadIdx.x / 32] = s;" in lines or "total += part[i];" in lines


def test_synccheck_finds_a_barrier_that_not_all_reach(toolbox: Toolbox):
    finding = by(checked(toolbox, source(barrier="if (threadIdx.x < 40) __syncthreads();")), "synccheck")
    assert finding.kind == "barrier"
    assert finding.source_line is not None and "__syncthreads" in finding.source_line


def test_initcheck_finds_global_memory_that_nobody_wrote(toolbox: Toolbox):
    finding = by(checked(toolbox, source(spare="spare[7]")), "initcheck")
    assert finding.kind == "uninitialised_read"
    assert finding.source_line == "total += spare[7];"


def test_the_poison_finds_shared_memory_that_nobody_wrote(toolbox: Toolbox):
    memory = checked(toolbox, source(summed=32))
    assert "uninitialised_shared" in {f.kind for f in memory.findings if f.check == "poison"}
