"""What a newcomer gets wrong: each is one message that says what to do next, and nothing said of a run is untrue."""

from __future__ import annotations

import pytest
from agent_cases import BROKEN, CPU, Agent

from tools.types import EvaluationResult

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
    result = EvaluationResult.model_validate_json(done.out)
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
