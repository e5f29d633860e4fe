"""The other commands, run as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_cases import BROKEN, CPU, GOOD, WRONG, Agent
from protocol_server import ProtocolServer, call, refuses, says

from tools.types import Judgement, Verdict


def candidate(agent: Agent, source: str) -> str:
    path = agent.folder / "candidate.py"
    path.write_text(source)
    return str(path)


@pytest.mark.parametrize(
    ("source", "verdict", "code"),
    [(GOOD, Verdict.CORRECT, 0), (WRONG, Verdict.WRONG_RESULT, 1), (BROKEN, Verdict.COMPILE_ERROR, 1)],
)
def test_evaluate_prints_the_record_as_json(agent: Agent, source: str, verdict: Verdict, code: int):
    done = agent("evaluate", str(agent.problem), candidate(agent, source), "--json", "--device", "cpu")
    result = Judgement.model_validate_json(done.out)
    assert (result.verdict, done.code) == (verdict, code)
    assert (result.timing is not None) == (verdict is Verdict.CORRECT)
    assert (result.problem, result.size, result.device) == (agent.problem.stem, "full", "cpu")


def test_evaluate_tells_a_reader_what_was_found(agent: Agent):
    done = agent("evaluate", str(agent.problem), candidate(agent, WRONG), "--device", "cpu")
    assert done.code == 1
    assert done.out.startswith(f"{agent.problem.stem} (full size, cpu)\n")
    assert "wrong_result" in done.out
    assert "elements wrong" in done.out


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [("nowhere.py", None, "no file"), ("empty.py", "", "empty"), ("binary.py", b"\xff\xfe\x00", "can't be read")],
)
def test_evaluate_of_a_file_that_is_none(agent: Agent, name: str, content: str | bytes | None, said: str):
    path = agent.folder / name
    if content is not None:
        path.write_bytes(content.encode() if isinstance(content, str) else content)
    done = agent("evaluate", str(agent.problem), str(path), "--device", "cpu")
    assert done.code == 2
    assert said in done.err


def test_problems_list_names_the_bundled_sets(agent: Agent):
    done = agent("problems", "list")
    assert done.code == 0
    assert "seeds/pointwise_conv" in done.out
    assert "basics/row_softmax" in done.out
    assert "basics" not in agent("problems", "list", "seeds").out


def test_problems_show_prints_source_and_analysis(agent: Agent):
    done = agent("problems", "show", "layer_norm")
    assert done.code == 0
    assert "class Model" in done.out
    assert "sizes: full, small" in done.out


def test_problems_check_says_that_a_problem_can_be_judged(agent: Agent):
    done = agent("problems", "check", str(agent.problem), "--device", "cpu")
    assert done.code == 0, done.text
    assert "float32[512, 512]" in done.out
    assert "can be judged" in done.out


def test_doctor_says_what_is_there_and_what_to_do(agent: Agent):
    done = agent("doctor")
    assert done.code == 0, done.text
    for name in ("torch", "C++ compiler", "GPU", "sandbox", "OPENAI_API_KEY"):
        assert name in done.out


def test_doctor_without_a_compiler(agent: Agent, tmp_path: Path):
    agent.environment["PATH"] = str(tmp_path)
    agent.environment.pop("CXX", None)
    done = agent("doctor")
    assert done.code == 2
    assert "apt install g++" in done.out


def test_replay_shows_a_run_in_the_terminal_and_as_json(agent: Agent, openai_server: ProtocolServer):
    openai_server.script(says("I try this.", call("c1", "time_kernel", {"id": "k1"})))
    agent(*agent.solve(openai_server.base_url, "--max-turns", "1"))
    shown = agent("replay", str(agent.run))
    assert shown.code == 0
    assert "I try this." in shown.out
    assert "time_kernel" in shown.out
    document = json.loads(agent("replay", str(agent.run), "--json").out)
    assert document["problem"] == "chain"
    followed = agent("replay", str(agent.run), "--follow", "--json").out.splitlines()
    assert [json.loads(line)["event"] for line in followed][-1] == "run_finished"


def test_replay_of_nothing(agent: Agent):
    done = agent("replay", "nowhere")
    assert done.code == 2
    assert "nowhere" in done.err


def batch(agent: Agent, server: ProtocolServer, *more: str) -> list[str]:
    return ["batch", "set", "--model", "test-model", "--base-url", server.base_url, *CPU, "--max-turns", "1", *more]


@pytest.fixture
def problem_set(agent: Agent) -> Path:
    folder = agent.folder / "set"
    folder.mkdir()
    text = agent.problem.read_text()
    (folder / "1_good.py").write_text(text)
    (folder / "2_odd.py").write_text(text.replace("return [torch.randn(n, n)]", "raise RuntimeError('no data')"))
    (folder / "3_none.py").write_text(text)
    return folder


def test_a_batch_goes_through_a_set_and_closes_with_a_table(
    agent: Agent, openai_server: ProtocolServer, problem_set: Path
):
    openai_server.script(says("", call("c1", "evaluate_kernel", {"source": GOOD})), says("No idea."))
    done = agent(*batch(agent, openai_server))
    assert done.code == 1, done.text
    assert "1 of 3 solved" in done.out
    for said in ("1_good", "2_odd", "no data", "no correct kernel"):
        assert said in done.out
    assert openai_server.left == 0


def test_a_batch_that_was_stopped_goes_on_where_it_was(agent: Agent, openai_server: ProtocolServer, problem_set: Path):
    openai_server.script(says("No idea."), refuses(401, code="invalid_api_key"))
    stopped = agent(*batch(agent, openai_server))
    assert stopped.code == 2
    assert "OPENAI_API_KEY" in stopped.err
    openai_server.script(says("No idea."))
    done = agent(*batch(agent, openai_server))
    assert done.code == 1, done.text
    assert "0 of 3 solved" in done.out
    assert len(openai_server.requests) == 3
    assert len(agent.runs) == 1
    # A third start begins anew, since the batch has come to its end.
    openai_server.script(says("No idea."), says("No idea."))
    agent(*batch(agent, openai_server))
    assert len(agent.runs) == 2


def test_a_batch_of_nothing(agent: Agent, openai_server: ProtocolServer):
    done = agent(*batch(agent, openai_server))
    assert done.code == 2
    assert "set" in done.err
