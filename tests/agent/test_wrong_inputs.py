"""What a newcomer gets wrong: each is one message that says what to do next, and nothing said of a run is untrue."""

from __future__ import annotations

import pytest
from agent_cases import BROKEN, CPU, Agent

from tools.types import Judgement

MAILBOX = ("--mailbox", "box", "--no-wait", *CPU)


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [("--max-minutes", "-1", "above 0"), ("--max-cost", "0", "above 0"), ("--max-minutes", "nan", "above 0")],
)
@pytest.mark.parametrize("command", ["solve", "batch"])
def test_a_budget_of_nothing(agent: Agent, command: str, option: str, value: str, said: str):
    done = agent(command, str(agent.problem), *MAILBOX, option, value)
    assert done.code == 2
    assert option in done.err
    assert said in done.err
    assert not agent.runs


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--mailbox", "file"), "--mailbox file can't be a folder: file is a file"),
        ((*MAILBOX, "--runs", "file/below"), "--runs file/below can't be a folder: file is a file"),
        ((*MAILBOX, "--run-dir", "nowhere"), "There is no run folder nowhere. Leave --run-dir out"),
        ((*MAILBOX, "--run-dir", ".", "--new"), "--run-dir and --new exclude each other"),
        ((*MAILBOX, "--base-url", "http://127.0.0.1:1/v1"), "--base-url goes with --model NAME"),
    ],
)
def test_options_that_can_not_be_carried_out(agent: Agent, more: tuple[str, ...], said: str):
    (agent.folder / "file").write_text("")
    done = agent("solve", str(agent.problem), *more)
    assert done.code == 2
    assert done.err.startswith(said)
    assert len(done.err.splitlines()) == 1
    assert not agent.runs


def test_names_that_mean_no_problem_are_all_said_before_any_is_checked(agent: Agent):
    named = (str(agent.problem), "nosuch", "layer_norm", "rms_nom_residual")
    done = agent("problems", "check", *named, "--device", "cpu")
    assert done.code == 2
    assert not done.out
    assert "no bundled problem nosuch" in done.err
    assert "no bundled problem rms_nom_residual. Did you mean rms_norm_residual?" in done.err
    assert done.err.endswith("Nothing was checked.\n")


def test_lines_of_a_list_that_mean_no_problem_are_all_named(agent: Agent):
    (agent.folder / "all.txt").write_text(f"{agent.problem}\nnosuch\n# a comment\nlayer_nrm\n")
    done = agent("batch", "all.txt", *MAILBOX)
    assert done.code == 2
    first, second = done.err.splitlines()
    assert first.startswith("all.txt, line 2: ")
    assert second.startswith("all.txt, line 4: ")
    assert second.endswith("Did you mean layer_norm?")


def test_a_folder_without_problems_is_not_offered_to_batch(agent: Agent):
    (agent.folder / "empty").mkdir()
    done = agent("solve", "empty", *MAILBOX)
    assert done.code == 2
    assert "holds no .py file" in done.err
    assert "agent batch" not in done.err
    assert "agent batch" in agent("solve", str(agent.folder), *MAILBOX).err


def test_replay_of_a_folder_of_runs_names_one_of_them(agent: Agent):
    for name in ("runs/20260101-000000-batch-set/20260101-000001-old", "runs/20260102-000000-new"):
        (agent.folder / name).mkdir(parents=True)
        (agent.folder / name / "events.jsonl").write_text("")
    done = agent("replay", "runs")
    assert done.code == 2
    assert "a folder of runs" in done.err
    assert "runs/20260102-000000-new" in done.err
    assert "runs/20260101-000000-batch-set/20260101-000001-old" in agent("replay", "runs/20260101-000000-batch-set").err
    assert "no run folder" in agent("replay", "").err


def test_no_wait_without_a_mailbox(agent: Agent):
    done = agent("solve", str(agent.problem), "--recorded", "rms_norm_residual_cpu", "--no-wait")
    assert done.code == 2
    assert "--mailbox" in done.err


def test_a_folder_is_no_candidate(agent: Agent):
    done = agent("evaluate", str(agent.problem), str(agent.folder), "--device", "cpu")
    assert done.code == 2
    assert "is a folder" in done.err


def test_the_log_of_a_build_that_is_gone_is_not_named(agent: Agent):
    path = agent.folder / "broken.py"
    path.write_text(BROKEN)
    done = agent("evaluate", str(agent.problem), str(path), "--json", "--device", "cpu")
    result = Judgement.model_validate_json(done.out)
    assert result.build.diagnostics
    assert result.build.log_path is None


@pytest.mark.parametrize(("small", "size"), [("", "full"), ("SMALL = {'n': 64}\n", "small")])
def test_a_problem_without_a_small_size_is_not_said_to_run_at_one(agent: Agent, small: str, size: str):
    agent.problem.write_text(agent.problem.read_text() + small)
    done = agent("solve", str(agent.problem), *MAILBOX)
    assert done.code == 75, done.text
    assert f"({size} size, cpu)" in done.out
    prompt = (agent.folder / "box" / "001-prompt.md").read_text()
    assert ("small size" in prompt) == (size == "small")


def test_replies_for_another_problem_are_said_to_be_so(agent: Agent):
    done = agent("solve", str(agent.problem), "--recorded", "rms_norm_residual_cpu", "--max-turns", "1", *CPU)
    assert done.code == 1, done.text
    assert "written for rms_norm_residual" in done.out
    assert "1 candidate in 1 turn " in done.out


def test_the_table_of_a_batch_keeps_names_apart_and_leaves_reasons_above_it(agent: Agent):
    folder = agent.folder / ("a_long_name_of_a_folder_" * 4)
    (folder / "deeper").mkdir(parents=True)
    for name in ("first.py", "deeper/second.py"):
        (folder / name).write_text("import torch\n")
    listed = agent.folder / "all.txt"
    listed.write_text("\n".join(str(folder / name) for name in ("first.py", "deeper/second.py")))
    done = agent("batch", str(listed), *MAILBOX)
    assert done.code == 1, done.text
    above, _, table = done.out.partition("┏")
    assert above.count("defines no `Model`") == 2
    assert "deeper/second.py" in table
    assert table.count("not run") == 2
    assert "defines no" not in table


def test_a_reference_that_raises_is_the_problems_fault_and_names_the_line(agent: Agent):
    text = agent.problem.read_text()
    agent.problem.write_text(text.replace("def forward(self, x):", "def forward(self, x):\n        x = x @ x[:3]"))
    done = agent("solve", str(agent.problem), *MAILBOX)
    assert done.code == 2, done.text
    assert "Model.forward raised" in done.err
    assert "of the problem)" in done.err
    assert "our fault" not in done.text
