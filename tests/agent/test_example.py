"""The bundled recording, on this machine: only the model's words are recorded."""

from __future__ import annotations

import pytest
from agent_cases import CPU, Agent

from transcripts.events import ToolResult


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_recorded_model_fails_to_build_is_wrong_then_right_then_faster(agent: Agent):
    done = agent("solve", "rms_norm_residual", "--recorded", "rms_norm_residual_cpu", *CPU, timeout=880)
    assert done.code == 0, done.text
    results = [event.record for event in agent.events if isinstance(event, ToolResult)]
    verdicts = [record["verdict"] for record in results if record["kind"] == "kernel"]
    assert verdicts == ["compile_error", "wrong_result", "correct", "correct"]
    assert (agent.result["solved"], agent.result["reason"]) == (True, "submitted")
    assert "Speed-up over the reference" in done.out
    assert "solution.py" in done.out
