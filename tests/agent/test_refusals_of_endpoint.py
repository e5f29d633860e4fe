"""Endpoints that refuse, input that is unusable: a message that says what to do, an exit code, and nothing lost."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from agent_cases import CPU, Agent
from protocol_server import ProtocolServer, call, refuses, says

from transcripts import restore

NONSENSE = call("c1", "time_kernel", {"id": "k1"})


@pytest.mark.parametrize(
    ("status", "message", "code", "said"),
    [
        (401, "bad key", "invalid_api_key", "OPENAI_API_KEY"),
        (404, "no such model", "model_not_found", "test-model"),
        (400, "tools are not supported", None, "tool"),
    ],
)
def test_a_refusal_leaves_a_run_that_the_same_command_takes_up(
    agent: Agent, openai_server: ProtocolServer, status: int, message: str, code: str | None, said: str
):
    openai_server.script(says("", NONSENSE), refuses(status, message, code=code))
    command = agent.solve(openai_server.base_url, "--max-turns", "2")
    done = agent(*command)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert "the same command" in done.err
    assert not (agent.run / "result.json").exists()

    openai_server.script(says("", NONSENSE))
    again = agent(*command)
    assert again.code == 1, again.text
    assert agent.result["turns"] == 2
    assert openai_server.left == 0


def test_a_full_context_ends_the_run_in_order(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(
        says("", NONSENSE), refuses(400, "maximum context length is 8192 tokens", code="context_length_exceeded")
    )
    done = agent(*agent.solve(openai_server.base_url))
    assert done.code == 1, done.text
    assert agent.result["reason"] == "context_full"


def test_nobody_listening(agent: Agent):
    done = agent(*agent.solve("http://127.0.0.1:9/v1"))
    assert done.code == 2
    assert "--base-url" in done.err


def test_no_key(agent: Agent):
    done = agent("solve", str(agent.problem), "--model", "gpt-x", *CPU)
    assert done.code == 2
    assert "OPENAI_API_KEY" in done.err
    assert agent.runs == []


@pytest.mark.parametrize("more", [[], ["--model", "m", "--mailbox", "box"]])
def test_exactly_one_source_of_replies(agent: Agent, more: list[str]):
    done = agent("solve", str(agent.problem), *CPU, *more)
    assert done.code == 2
    assert "--mailbox" in done.err


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (None, "no file"),
        ("", "empty"),
        ("def get_inputs():\n    return []\n", "Model"),
        ("class Model:\n    pass\n", "get_inputs"),
        ("class Model(:\n", "line 1"),
    ],
)
def test_a_problem_file_that_is_none(agent: Agent, source: str | None, said: str):
    path = agent.folder / "odd.py"
    if source is not None:
        path.write_text(source)
    done = agent("solve", str(path), "--mailbox", "box", *CPU)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
    assert agent.runs == []


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('no data today')", "no data today"),
        ("return [3, 'x']", "tensor"),
        ("return [torch.empty(1 << 50, device='meta').to('cpu')]", "memory"),
    ],
)
def test_inputs_that_cannot_be_had(agent: Agent, body: str, said: str):
    text = agent.problem.read_text().replace("return [torch.randn(n, n)]", body)
    agent.problem.write_text(text)
    done = agent("solve", str(agent.problem), "--mailbox", "box", *CPU)
    assert done.code == 2, done.text
    assert said in done.err
    assert "Traceback" not in done.err
    assert agent.runs == []


def test_a_device_that_is_not_there(agent: Agent):
    from tools.device.nvml import gpus

    if gpus():
        pytest.skip("this machine has a GPU")
    done = agent("solve", str(agent.problem), "--mailbox", "box", "--device", "cuda")
    assert done.code == 2
    assert "--device cpu" in done.err


def test_no_compiler(agent: Agent, tmp_path: Path):
    agent.environment["PATH"] = str(tmp_path)
    agent.environment.pop("CXX", None)
    done = agent("solve", str(agent.problem), "--mailbox", "box", "--no-wait", *CPU)
    assert done.code == 2, done.text
    assert "install" in done.err
    assert "Traceback" not in done.err


def test_an_unknown_recording(agent: Agent):
    done = agent("solve", str(agent.problem), "--recorded", "no_such_recording", *CPU)
    assert done.code == 2
    assert "no_such_recording" in done.err


def test_a_cost_limit_without_a_known_price(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("", NONSENSE))
    done = agent(*agent.solve(openai_server.base_url, "--max-cost", "1"))
    assert done.code == 2
    assert "--max-turns" in done.err
    assert restore(agent.run).turns == 1


def test_a_full_disk_keeps_what_was_written(agent: Agent, openai_server: ProtocolServer):
    """The runs lie on a file system of 256 KiB, which long replies fill."""
    (agent.folder / "runs").mkdir()
    small = ["unshare", "--map-root-user", "--mount", "sh", "-c"]
    if subprocess.run([*small, "mount -t tmpfs none runs"], cwd=agent.folder, capture_output=True).returncode:
        pytest.skip("this kernel lets nobody mount a small file system")
    openai_server.script(says("x" * 100_000, NONSENSE, size=50_000) for _ in range(4))
    command = [sys.executable, "-m", "agent", *agent.solve(openai_server.base_url)]
    script = 'mount -t tmpfs -o size=256k none runs && { "$@"; code=$?; cp -r runs kept; exit $code; }'
    done = subprocess.run(
        [*small, script, "sh", *command],
        cwd=agent.folder,
        env=agent.environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert "disk is full" in done.stderr
    assert "Traceback" not in done.stderr
    (kept,) = (agent.folder / "kept").iterdir()
    # The log ends with a whole event; every reply in it is whole.
    state = restore(kept)
    assert 1 <= state.turns < 4
    assert all(len(reply.text) == 100_000 for reply in state.replies)
