"""What a candidate's threads run between being given inputs and being called counts as its time."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import TimingResult

SOURCE = r"""
import torch
from torch.utils.cpp_extension import load_inline

ext = load_inline(name="worker_thread", functions=["run"], cpp_sources='''
#include <torch/extension.h>
#include <unistd.h>
#include <thread>
static std::thread* other = nullptr;
torch::Tensor run(torch::Tensor x) {
    if (!other) {
        other = new std::thread([] { for (volatile long n = 0;; ++n) if (SLEEPS) usleep(20000); });
        other->detach();
    }
    return at::softmax(x, -1);
}
''')


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.run(x)
"""


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", size="small", cache_dir=cache.mkdir("agent-builds"))
    with Evaluator(load_problem("row_softmax"), settings) as evaluator:
        yield evaluator


def timed(evaluator: Evaluator, folder: Path, sleeps: str) -> TimingResult:
    source = SOURCE.replace("SLEEPS", sleeps)
    build = evaluator.build(source, folder)
    assert build.ok, build.diagnostics
    found = evaluator.time(source, build)
    assert isinstance(found, TimingResult), found
    return found


def test_a_thread_that_never_rests_is_told_and_counted_in(evaluator: Evaluator, tmp_path: Path):
    for attempt in range(4):
        found = timed(evaluator, tmp_path / str(attempt), "false")
        # It is at work while inputs are given, and on two processors also while outputs are carried away: one is told.
        told = [f for f in found.findings if f.code in ("work_ahead", "work_behind")]
        if told:
            break  # on a busy machine the thread may not get a processor when it would tell
    (finding,) = told
    counted = finding.observed.get("ahead_us") or finding.observed.get("behind_us")
    assert isinstance(counted, float) and counted > 50
    assert found.candidate_us.value > counted


def test_a_thread_that_sleeps_costs_nothing(evaluator: Evaluator, tmp_path: Path):
    assert "work_ahead" not in {f.code for f in timed(evaluator, tmp_path, "true").findings}
