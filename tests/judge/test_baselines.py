"""The reference compiled, beside eager: what is timed, kept, and left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from problems import ProblemSpec
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.judge.baselines import Baseline, best
from tools.types import Interval, PrecisionClass

PROBLEM = """
import os
import torch
import torch.nn as nn

BEFORE

class Model(nn.Module):
    def forward(self, x):
        for _ in range(12):
            x = x * 1.01 + 0.5
        return x

def get_inputs():
    return [torch.rand(1 << 21)]

def get_init_inputs():
    return []
"""
FAILS = "torch.compile = None"
KILLS = "torch.compile = lambda *args, **kwargs: os._exit(3)"


def baselines(folder: Path, before: str = "") -> dict[str, float]:
    """Microseconds of eager and of the compiled reference, once the line `before` has run."""
    spec = ProblemSpec(name="chain", source=PROBLEM.replace("BEFORE", before), origin="path")
    settings = EvaluatorSettings(device="cpu", cache_dir=folder, compile_baselines=True)
    with Evaluator(spec, settings) as evaluator:
        return evaluator.facts().baselines_us


def test_a_compiled_chain_is_one_pass_and_is_timed_once_a_machine(tmp_path: Path):
    found = baselines(tmp_path)
    assert set(found) == {"eager", "compile"}
    # Twenty-four passes over memory against one.
    assert found["compile"] < found["eager"] / 2
    (kept,) = (tmp_path / "baselines").glob("*.json")
    known = json.loads(kept.read_text())
    assert (
        known["compile"]["to_eager"]["low"] <= found["compile"] / found["eager"] <= known["compile"]["to_eager"]["high"]
    )
    known["compile"]["us"] = 1.5
    kept.write_text(json.dumps(known))
    assert baselines(tmp_path)["compile"] == 1.5


@pytest.mark.parametrize(
    ("demanded", "compared"),
    [
        (None, "compile"),
        (PrecisionClass.FP32, "compile"),
        (PrecisionClass.TF32, "eager_tf32"),
        (PrecisionClass.BF16, "eager_tf32"),
    ],
)
def test_a_candidate_is_compared_with_what_is_as_accurate_as_it_has_to_be(
    demanded: PrecisionClass | None, compared: str
):
    times = {"eager": 10.0, "compile": 9.0, "eager_tf32": 2.0}
    ratio = Interval(value=1.0, low=1.0, high=1.0)
    assert best({kind: Baseline(us=us, to_eager=ratio) for kind, us in times.items()}, demanded) == compared
    assert best({}, demanded) is None


@pytest.mark.parametrize("before", [FAILS, KILLS])
def test_what_can_not_be_compiled_is_left_out_and_ends_nothing(tmp_path: Path, before: str):
    found = baselines(tmp_path, before)
    assert set(found) == {"eager"}
    assert found["eager"] > 0
