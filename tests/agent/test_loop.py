"""The loop from end to end: the real command line, a real server of the protocol, real builds, checks and timings."""

from __future__ import annotations

from typing import Any

import pytest
from agent_cases import BROKEN, GOOD, WRONG, WRONG_TO_GOOD, Agent
from protocol_server import ProtocolServer, call, says

from transcripts.events import BestChanged, Confirmed, Nudged, ToolResult


def told(server: ProtocolServer, request: int) -> str:
    """All that the model reads in a request since the one before it."""
    before = len(server.requests[request - 1]["messages"]) if request else 0
    return "\n".join(str(message["content"]) for message in server.requests[request]["messages"][before:])


def evaluate(number: int, source: str) -> tuple[str, str, str]:
    return call(f"c{number}", "evaluate_kernel", {"source": source})


def edit(number: int, kernel: str, change: dict[str, str]) -> tuple[str, str, str]:
    return call(f"c{number}", "edit_kernel", {"id": kernel, "edits": [change]})


def test_a_run_from_a_failed_build_to_a_confirmed_kernel(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(
        says("First try.", evaluate(1, BROKEN)),
        says("That did not build.", evaluate(2, WRONG)),
        says("A factor is off.", edit(3, "k2", WRONG_TO_GOOD)),
        says("Done.", call("c4", "submit", {"id": "k3"})),
    )
    done = agent(*agent.solve(openai_server.base_url))
    assert done.code == 0, done.text
    assert str(agent.run / "solution.py") in done.out or "solution.py" in done.out

    assert "#error" in told(openai_server, 1) or "this never builds" in told(openai_server, 1)
    assert "wrong_result" in told(openai_server, 2)
    assert "correct" in told(openai_server, 3)
    assert "fastest correct candidate so far" in told(openai_server, 3)

    verdicts = [event.record.get("verdict") for event in agent.events if isinstance(event, ToolResult)]
    assert verdicts[:3] == ["compile_error", "wrong_result", "correct"]
    assert [event.id for event in agent.events if isinstance(event, BestChanged)] == ["k3"]
    assert [event.confirmed for event in agent.events if isinstance(event, Confirmed)] == [True]
    result = agent.result
    assert (result["solved"], result["kernel"], result["reason"], result["turns"]) == (True, "k3", "submitted", 4)
    assert result["speedup_low"] <= result["speedup"] <= result["speedup_high"]
    assert result["usage"]["prompt_tokens"] == 400
    assert result["confirmation"]["build"]["modules"][0]["route"] == "stock"
    assert (agent.run / "solution.py").read_text() == GOOD


def test_what_never_was_judged_is_judged_when_the_turns_end(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("Only a build.", call("c1", "compile_kernel", {"source": GOOD})))
    done = agent(*agent.solve(openai_server.base_url, "--max-turns", "1"))
    assert done.code == 0, done.text
    assert "last turn" in told(openai_server, 0)
    assert (agent.result["solved"], agent.result["kernel"], agent.result["reason"]) == (True, "k1", "turns")


def test_calls_that_make_no_sense_cost_a_turn_and_nothing_else(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(
        says("", call("c1", "evaluate_kernel", '{"source": "import torch')),
        says("", call("c2", "launch_missiles", {})),
        says("", call("c3", "time_kernel", {"id": "k99"})),
        says("", call("c4", "edit_kernel", {"id": "k1", "edits": [{"old": "a", "new": "b"}]})),
        says("", call("c5", "submit", {"id": "k1"}), call("c6", "run_correctness", {})),
    )
    done = agent(*agent.solve(openai_server.base_url, "--max-turns", "5"))
    assert done.code == 1, done.text
    codes = [event.record.get("code") for event in agent.events if isinstance(event, ToolResult)]
    expected = ["broken_json", "unknown_tool", "unknown_id", "unknown_id", "unknown_id", "one_of_source_or_id"]
    assert codes == expected
    assert (agent.result["solved"], agent.result["candidates"]) == (False, 0)
    assert not (agent.run / "solution.py").exists()


def test_replies_without_a_tool_call_are_nudged_and_end_after_three(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("Let me think."), says(""), says("```python\nclass ModelNew: ...\n```"))
    done = agent(*agent.solve(openai_server.base_url))
    assert done.code == 1, done.text
    assert "calls no tool" in told(openai_server, 1)
    assert "empty" in told(openai_server, 2)
    assert [event.in_a_row for event in agent.events if isinstance(event, Nudged)] == [1, 2]
    assert agent.result["reason"] == "no_tool_call"


def test_a_tool_call_ends_a_row_of_nudges(agent: Agent, openai_server: ProtocolServer):
    nonsense = call("c1", "unknown", {})
    openai_server.script(says("Hm."), says("Hm."), says("", nonsense), says("Hm."), says("Hm."), says("Hm."))
    done = agent(*agent.solve(openai_server.base_url))
    assert done.code == 1
    assert agent.result["turns"] == 6


def test_a_submit_of_a_wrong_candidate_is_refused_and_the_run_goes_on(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(
        says("", call("c1", "compile_kernel", {"source": WRONG})), says("", call("c2", "submit", {"id": "k1"}))
    )
    done = agent(*agent.solve(openai_server.base_url, "--max-turns", "2"))
    assert done.code == 1
    records = [event.record for event in agent.events if isinstance(event, ToolResult)]
    assert records[1]["code"] == "submit_not_correct"
    assert agent.result["reason"] == "turns"


def test_the_model_gets_the_tools_and_the_conversation_in_order(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(
        says("Two at once.", call("a", "time_kernel", {"id": "k1"}), call("b", "time_kernel", {"id": "k2"})), says("")
    )
    agent(*agent.solve(openai_server.base_url, "--max-turns", "2"))
    first, second = openai_server.requests
    names = {tool["function"]["name"] for tool in first["tools"]}
    expected = {"compile_kernel", "run_correctness", "time_kernel", "evaluate_kernel", "edit_kernel", "submit"}
    assert expected <= names
    assert [message["role"] for message in first["messages"]] == ["system", "user"]
    assert [message["role"] for message in second["messages"]] == ["system", "user", "assistant", "tool", "tool"]
    answers: list[dict[str, Any]] = second["messages"][3:]
    assert [answer["tool_call_id"] for answer in answers] == ["a", "b"]
    # The status line stands once, under the last result.
    assert "Left:" not in answers[0]["content"]
    assert "Left: 1 turn." in answers[1]["content"]


@pytest.mark.parametrize("size", ["full", "small"])
def test_a_problem_without_a_small_size_runs_at_the_one_it_has(agent: Agent, openai_server: ProtocolServer, size: str):
    openai_server.script(says(""))
    done = agent(*agent.solve(openai_server.base_url, "--max-turns", "1", "--size", size))
    assert done.code == 1, done.text
    assert "512, 512" in told(openai_server, 0)
