"""From the command line: unjudgeable problems are refused before a model is asked, repaired ones are judged."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import soundness_problems as problems

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import EvaluationResult, Verdict

CANDIDATE = r'''
import torch
from torch.utils.cpp_extension import load_inline

source = r"""
#include <torch/extension.h>
#include <cmath>

torch::Tensor f(torch::Tensor x{parameters}) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); i++) out[i] = {expression};
    return y;
}
"""
ext = load_inline(name="soundness_candidate", cpp_sources=source, functions=["f"])


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return ext.f(x{arguments})
'''


def candidate(expression: str, *, init: str = "pass", parameters: str = "", arguments: str = "") -> str:
    filled = CANDIDATE.replace("{expression}", expression).replace("{init}", init)
    return filled.replace("{parameters}", parameters).replace("{arguments}", arguments)


SIGMOID = candidate("1.0f / (1.0f + std::exp(-in[i]))")
ONES = candidate("1.0f")
RELU = candidate("in[i] > 0 ? in[i] : 0", init="self.gain = torch.nn.Parameter(torch.ones(64))")
RELU_WITH_GAIN = candidate(
    "in[i] > 0 ? in[i] * gain.data_ptr<float>()[i % 64] : 0",
    init="self.gain = torch.nn.Parameter(torch.ones(64))",
    parameters=", torch::Tensor gain",
    arguments=", self.gain",
)


@pytest.fixture(scope="module")
def cache(request: pytest.FixtureRequest) -> Path:
    kept: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    return kept.mkdir("agent-builds")


@pytest.fixture
def judge(cache: Path, tmp_path: Path) -> Iterator[object]:
    """Evaluates a candidate for the text of a problem."""
    opened: list[Evaluator] = []

    def evaluate(problem: str, source: str, *, repair_inputs: bool = False) -> EvaluationResult:
        path = tmp_path / "problem_of_test.py"
        path.write_text(problem)
        settings = EvaluatorSettings(device="cpu", cache_dir=cache, repair_inputs=repair_inputs)
        evaluator = Evaluator(load_problem(str(path)), settings)
        opened.append(evaluator)
        return evaluator.evaluate(source, tmp_path / "log")

    yield evaluate
    for evaluator in opened:
        evaluator.close()


def codes(result: EvaluationResult) -> list[str]:
    assert result.correctness is not None
    return [finding.code for finding in result.correctness.findings]


def test_on_repaired_inputs_work_is_told_from_none_and_each_result_says_so(judge):
    honest = judge(problems.SATURATED, SIGMOID, repair_inputs=True)
    assert honest.verdict is Verdict.CORRECT
    assert "inputs_repaired" in codes(honest)
    assert honest.timing is not None
    assert [f.severity for f in honest.timing.findings if f.code == "inputs_repaired"] == ["note"]
    lazy = judge(problems.SATURATED, ONES, repair_inputs=True)
    assert lazy.verdict is Verdict.WRONG_RESULT
    assert [t.kind for t in lazy.correctness.trials] == ["own"]
    assert "inputs_repaired" in codes(lazy)


def test_correct_on_an_unjudgeable_problem_carries_a_warning(judge):
    result = judge(problems.ALWAYS_SATURATED, ONES)
    assert result.verdict is Verdict.CORRECT
    assert "unjudgeable" in codes(result)


def test_a_gain_of_ones_can_not_be_left_out(judge):
    assert judge(problems.WEIGHTS_OF_ONE, RELU_WITH_GAIN).verdict is Verdict.CORRECT
    without = judge(problems.WEIGHTS_OF_ONE, RELU)
    assert without.verdict is Verdict.WRONG_RESULT
    assert "stale_weights" in codes(without)


@pytest.fixture
def agent(tmp_path: Path, cache: Path):
    """Runs the command line in a folder with a judgeable and an unjudgeable problem."""
    folder = tmp_path / "set"
    folder.mkdir()
    (folder / "sound.py").write_text(problems.SOUND)
    (folder / "hollow.py").write_text(problems.ONE_CLASS)
    environment = {**os.environ, "KERNEL_AGENT_CACHE": str(cache), "PYTHONPATH": str(Path(__file__).parents[2])}

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "agent", *arguments, "--device", "cpu", "--size", "full"]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=280)

    return run


def test_a_set_is_checked_without_a_model_and_each_problem_gets_its_label(agent):
    done = agent("problems", "check", "set")
    assert done.returncode == 1, done.stderr
    assert "sound: can be judged" in done.stdout
    assert "hollow: can NOT be judged" in done.stdout
    assert "error constant_passes: returning a constant passes" in done.stdout
    assert "1 of 2 can be judged" in done.stdout


def test_solve_refuses_what_can_not_be_judged_before_a_model_is_asked(agent, tmp_path: Path):
    solve = ("solve", "set/hollow.py", "--mailbox", "box", "--no-wait", "--no-compile")
    done = agent(*solve)
    assert done.returncode == 2
    assert "constant_passes" in done.stdout
    assert "--repair-inputs" in done.stderr and "--allow-unjudgeable" in done.stderr
    assert not list(tmp_path.glob("box/*prompt*"))
    assert not (tmp_path / "runs").exists()
    allowed = agent(*solve, "--allow-unjudgeable")
    assert allowed.returncode == 75, allowed.stderr
    assert "constant_passes" in allowed.stdout


def test_a_batch_goes_on_without_the_problem_that_can_not_be_judged(agent, tmp_path: Path):
    done = agent("batch", "set", "--mailbox", "box", "--no-wait", "--no-compile")
    assert done.returncode == 75, done.stdout + done.stderr
    (rows,) = tmp_path.glob("runs/*-batch-*/rows.jsonl")
    failed = [json.loads(line) for line in rows.read_text().splitlines() if line]
    assert [Path(row["problem"]).stem for row in failed] == ["hollow"]
    assert "say nothing" in failed[0]["failure"]
