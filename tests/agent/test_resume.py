"""Runs that are killed or interrupted, and go on by the same command."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from agent_cases import CPU, GOOD, WRONG, Agent
from protocol_server import Exchange, ProtocolServer, Stream, call, says

from transcripts import read_events, restore
from transcripts.events import ReplyReceived, Resumed, RunStarted

NONSENSE = call("c1", "time_kernel", {"id": "k1"})
# A wrong one is not timed, and ends in no confirmation: what is lost or done twice shows all the same.
EVALUATE = call("c2", "evaluate_kernel", {"source": WRONG})


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.02)


def held(stream: Stream, release: threading.Event) -> Callable[[Exchange], None]:
    """An answer that is sent once the test allows it."""

    def answer(exchange: Exchange) -> None:
        release.wait(120)
        stream(exchange)

    return answer


def logged(agent: Agent, name: str) -> int:
    return sum(event.event == name for event in agent.events) if agent.runs else 0


def press_ctrl_c(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGINT)


def ended(process: subprocess.Popen[str]) -> int:
    process.communicate(timeout=240)
    return process.returncode


def test_killed_while_the_model_writes_loses_no_turn_before(agent: Agent, openai_server: ProtocolServer):
    release = threading.Event()
    openai_server.script(says("", NONSENSE), held(says("never read"), release))
    command = agent.solve(openai_server.base_url, "--max-turns", "2")
    process = agent.start(*command)
    wait_until(lambda: len(openai_server.requests) == 2)
    process.kill()
    process.communicate()
    release.set()
    assert restore(agent.run).turns == 1

    openai_server.script(says("", NONSENSE))
    done = agent(*command)
    assert done.code == 1, done.text
    assert agent.result["turns"] == 2
    # The conversation after the kill is the one before it.
    assert openai_server.requests[2]["messages"] == openai_server.requests[1]["messages"]
    assert len([event for event in agent.events if isinstance(event, Resumed)]) == 1


def test_killed_while_a_tool_runs_runs_that_call_again(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("", EVALUATE))
    command = agent.solve(openai_server.base_url, "--max-turns", "2")
    process = agent.start(*command)
    wait_until(lambda: logged(agent, "tool_call") == 1)
    process.kill()
    process.communicate()
    assert logged(agent, "tool_result") == 0

    openai_server.script(says("", NONSENSE))
    done = agent(*command)
    assert done.code == 1, done.text
    assert (logged(agent, "tool_call"), logged(agent, "tool_result")) == (3, 2)
    assert (agent.result["candidates"], agent.result["turns"]) == (1, 2)
    assert "**k1**: wrong_result" in str(openai_server.requests[1]["messages"][-1]["content"])


def test_killed_at_any_line_of_the_log_the_run_ends_the_same(agent: Agent, openai_server: ProtocolServer):
    """A process that dies leaves a prefix of the log; every prefix must lead to the same end."""
    script = [says("Hm."), says("", NONSENSE), says("", call("c4", "unknown", {})), says("")]
    openai_server.script(*script)
    command = agent.solve(openai_server.base_url, "--max-turns", "4")
    assert agent(*command).code == 1
    whole = (agent.run / "events.jsonl").read_bytes().splitlines(keepends=True)
    expected = agent.result
    log = agent.run / "events.jsonl"
    for kept in (1, 3, len(whole) // 2, len(whole) - 3):
        log.write_bytes(b"".join(whole[:kept]) + whole[kept][:20])
        (agent.run / "result.json").unlink(missing_ok=True)
        replies = sum(isinstance(event, ReplyReceived) for event in read_events(agent.run))
        openai_server.script(*script[replies:])
        done = agent(*command)
        assert done.code == 1, done.text
        assert openai_server.left == 0
        got = agent.result
        assert {name: got[name] for name in ("reason", "turns", "solved")} == {
            name: expected[name] for name in ("reason", "turns", "solved")
        }


def test_a_finished_run_is_not_taken_up_again(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says(""), says(""))
    command = agent.solve(openai_server.base_url, "--max-turns", "1")
    assert agent(*command).code == 1
    assert agent(*command).code == 1
    assert len(agent.runs) == 2
    named = agent(*command, "--run-dir", str(agent.runs[0]))
    assert named.code == 1
    assert "had finished before" in named.out
    assert len(openai_server.requests) == 2


def test_another_command_does_not_take_up_the_run(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("", NONSENSE))
    command = agent.solve(openai_server.base_url)
    assert agent(*command).code == 2  # the script ends, so the server refuses
    other = agent(*command, "--run-dir", str(agent.run), "--rule", "kernelbench")
    assert other.code == 2
    assert "rule was oracle and is kernelbench" in other.err
    openai_server.script(says(""))
    assert agent(*command, "--new", "--max-turns", "1").code == 1
    assert len(agent.runs) == 2


def test_a_larger_budget_goes_on_with_the_run(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("", NONSENSE))
    assert agent(*agent.solve(openai_server.base_url, "--max-turns", "3")).code == 2
    openai_server.script(says("", NONSENSE), says("", NONSENSE), says("", NONSENSE))
    assert agent(*agent.solve(openai_server.base_url, "--max-turns", "4")).code == 1
    assert agent.result["turns"] == 4


def test_ctrl_c_once_finishes_the_call_in_flight_and_writes_the_result(agent: Agent, openai_server: ProtocolServer):
    release = threading.Event()
    openai_server.script(held(says("", EVALUATE), release))
    command = agent.solve(openai_server.base_url, "--max-turns", "2")
    process = agent.start(*command)
    wait_until(lambda: len(openai_server.requests) == 1)
    press_ctrl_c(process)
    time.sleep(0.5)
    assert process.poll() is None
    release.set()
    assert ended(process) == 130
    # The reply that was in flight is kept; its call was not begun.
    assert logged(agent, "reply") == 1
    assert logged(agent, "tool_call") == 0
    assert agent.result["reason"] == "interrupted"

    openai_server.script(says("", NONSENSE))
    assert agent(*command).code == 1
    assert (agent.result["reason"], agent.result["candidates"], agent.result["turns"]) == ("turns", 1, 2)
    assert logged(agent, "reply") == 2


def test_ctrl_c_twice_stops_at_once_and_keeps_the_run(agent: Agent, openai_server: ProtocolServer):
    release = threading.Event()
    openai_server.script(says("", NONSENSE), held(says("never read"), release))
    command = agent.solve(openai_server.base_url, "--max-turns", "2")
    process = agent.start(*command)
    wait_until(lambda: len(openai_server.requests) == 2)
    press_ctrl_c(process)
    time.sleep(0.5)
    press_ctrl_c(process)
    assert ended(process) == 130
    release.set()
    assert not (agent.run / "result.json").exists()
    openai_server.script(says("", NONSENSE))
    assert agent(*command).code == 1
    assert agent.result["turns"] == 2


def test_ctrl_c_while_a_reply_is_awaited_ends_at_once(agent: Agent):
    process = agent.start("solve", str(agent.problem), "--mailbox", "box", *CPU)
    wait_until(lambda: (agent.folder / "box" / "001-prompt.md").exists())
    press_ctrl_c(process)
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 130
    assert agent.result["reason"] == "interrupted"
    assert "the same command goes on from here" in out


def test_two_processes_do_not_share_a_run(agent: Agent, openai_server: ProtocolServer):
    release = threading.Event()
    openai_server.script(held(says(""), release), says(""))
    command = agent.solve(openai_server.base_url, "--max-turns", "1")
    first = agent.start(*command)
    wait_until(lambda: len(openai_server.requests) == 1)
    named = agent(*command, "--run-dir", str(agent.run))
    assert named.code == 2
    assert "Another process" in named.err
    assert agent(*command).code == 1
    assert len(agent.runs) == 2
    release.set()
    assert ended(first) == 1


def test_a_mailbox_run_goes_on_reply_by_reply(agent: Agent):
    command = ("solve", str(agent.problem), "--mailbox", "box", "--no-wait", *CPU, "--max-turns", "2")
    assert agent(*command).code == 75
    prompt = (agent.folder / "box" / "001-prompt.md").read_text()
    assert "class Model" in prompt
    done = agent(*command)
    assert (done.code, "001-reply.md" in done.err) == (75, True)
    (agent.folder / "box" / "001-reply.md").write_text(f"Go.\n\n```tool evaluate_kernel\n```\n```python\n{GOOD}```\n")
    assert agent(*command).code == 75
    prompt = (agent.folder / "box" / "002-prompt.md").read_text()
    assert "**k1**: correct" in prompt, prompt
    (agent.folder / "box" / "002-reply.md").write_text("```tool submit\nid: k1\n```\n")
    done = agent(*command)
    assert done.code == 0, done.text
    assert agent.result["kernel"] == "k1"


def test_the_same_command_tells_its_replies_by_their_number(agent: Agent, openai_server: ProtocolServer):
    """The configuration in the log is the one by which a run is found again."""
    openai_server.script(says(""))
    agent(*agent.solve(openai_server.base_url, "--max-turns", "1"))
    started = agent.events[0]
    assert isinstance(started, RunStarted)
    assert started.config["model"] == "test-model"
    assert "max_turns" not in started.config
    assert Path(started.problem).name == "chain"


@pytest.mark.parametrize("folder", ["nowhere", "."])
def test_a_run_dir_that_is_none(agent: Agent, folder: str):
    done = agent("solve", str(agent.problem), "--mailbox", "box", *CPU, "--run-dir", folder)
    assert done.code == 2
    assert "no run folder" in done.err
