"""The reference compiled, beside eager: what is timed, kept, and left out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from problems import ProblemSpec
from tools.evaluator import Evaluator, EvaluatorSettings

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
    kept.write_text(json.dumps({**found, "compile": 1.5}))
    assert baselines(tmp_path)["compile"] == 1.5


@pytest.mark.parametrize("before", [FAILS, KILLS])
def test_what_can_not_be_compiled_is_left_out_and_ends_nothing(tmp_path: Path, before: str):
    found = baselines(tmp_path, before)
    assert set(found) == {"eager"}
    assert found["eager"] > 0
