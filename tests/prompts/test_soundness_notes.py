"""What the model is told of a problem that is hard to judge, and what it is not."""

from __future__ import annotations

import pytest

from problems import load_problem
from prompts import render
from tools.types import DeviceInfo, Evidence, Finding, PrecisionClass, ProblemFacts, SandboxLevel


def prompt(*notes: Finding) -> str:
    facts = ProblemFacts(
        device=DeviceInfo(kind="cpu", name="a processor", cores=2, memory_bytes=8 << 30),
        inputs=["float32[8]"],
        outputs=["float32[8]"],
        reference_precision=PrecisionClass.FP32,
        bytes_moved=64,
        flops=8.0,
        floor_us=1.0,
        floor_limited_by="memory",
        judge_notes=list(notes),
        evidence=Evidence(
            device="cpu",
            device_name="a processor",
            torch_version="2.13.0",
            sandbox=SandboxLevel.NAMESPACES,
            date="2026-01-01",
        ),
    )
    return render(
        "problem",
        spec=load_problem("layer_norm"),
        facts=facts,
        size="small",
        rule="oracle",
        precision=None,
        require_own_kernels=None,
    )


def test_other_inputs_than_the_problems_own_are_announced():
    note = Finding(
        code="inputs_repaired",
        severity="note",
        summary="judged and timed with its inputs 100 times smaller. As the problem stands, returning zeros passes",
        observed={"repair": "its inputs 100 times smaller"},
    )
    text = prompt(note)
    assert "this problem is judged and timed with its inputs 100 times smaller, of the same shapes" in text
    assert "zeros passes" not in text


@pytest.mark.parametrize("code", ["zeros_pass", "constant_passes", "input_independent", "weights_irrelevant"])
def test_the_model_is_not_told_which_answer_without_work_would_pass(code: str):
    text = prompt(Finding(code=code, severity="error", summary="returning zeros passes this judge"))
    assert "Do all of the work that `Model` does" in text
    assert "zeros" not in text.partition("# Tolerance")[2]


def test_what_matters_for_correctness_is_told_and_the_rest_is_not():
    text = prompt(
        Finding(code="reference_not_finite", severity="warning", summary="4 of 8 elements of the reference are NaN"),
        Finding(code="plain_allclose_blind", severity="note", summary="a plain allclose is passed by zeros"),
        Finding(
            code="reference_state", severity="note", summary="forward changes buffers (bn.running_mean), and so on"
        ),
    )
    assert "Of the problem itself: forward changes buffers (bn.running_mean), and so on." in text
    assert "Of the problem itself: 4 of 8 elements of the reference are NaN." in text
    assert "plain allclose is passed" not in text


def test_a_sound_problem_has_nothing_added():
    assert "Do all of the work" not in prompt()
