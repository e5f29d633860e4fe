"""A batch of problems that share a name, one of recorded runs, and what its table compares with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from agent_cases import CPU, GOOD, Agent
from rich.console import Console

from agent.batch import Row
from agent.cli.batch import _table
from agent.result import RunResult
from transcripts import RunFolder, read_header
from transcripts.events import ReplyReceived, RunStarted
from transcripts.messages import Reply, ToolCall


@pytest.fixture
def namesakes(agent: Agent) -> Path:
    """A list of two problems whose files have the same name, the second of them different."""
    for folder in ("old", "new"):
        (agent.folder / folder).mkdir()
        (agent.folder / folder / "chain.py").write_text(agent.problem.read_text() + f"# {folder}\n")
    listed = agent.folder / "both.txt"
    listed.write_text("old/chain.py\nnew/chain.py\n")
    return listed


def test_files_of_one_name_have_mailboxes_and_runs_of_their_own(agent: Agent, namesakes: Path):
    command = ("batch", namesakes.name, "--mailbox", "box", "--no-wait", "--max-turns", "1", *CPU)
    first = agent(*command)
    assert first.code == 75, first.text
    assert "Several problems are named chain." in first.out
    assert "old/chain.py is old-chain and new/chain.py is new-chain" in first.out
    (agent.folder / "box/old-chain/001-reply.md").write_text("I give up.")
    second = agent(*command)
    assert second.code == 75, second.text
    assert "# old" in (agent.folder / "box/old-chain/001-prompt.md").read_text()
    assert "# new" in (agent.folder / "box/new-chain/001-prompt.md").read_text()
    (agent.folder / "box/new-chain/001-reply.md").write_text("I give up.")
    done = agent(*command)
    assert done.code == 1, done.text
    rows = [json.loads(line) for line in (agent.run / "rows.jsonl").read_text().splitlines() if line]
    assert [read_header(agent.run / row["folder"]).problem for row in rows] == ["old-chain", "new-chain"]


def test_a_check_tells_files_of_one_name_apart(agent: Agent, namesakes: Path):
    done = agent("problems", "check", namesakes.name, "--device", "cpu")
    assert done.code == 0, done.text
    assert "old-chain: can be judged" in done.out
    assert "new-chain: can be judged" in done.out


def record(folder: Path, problem: str, *replies: Reply) -> None:
    with RunFolder.create(folder, RunStarted(problem=problem, model="some-model", config={})) as run:
        for turn, reply in enumerate(replies, 1):
            run.append(ReplyReceived(turn=turn, reply=reply))


def test_a_batch_takes_the_replies_of_each_problem_from_a_folder_of_runs(agent: Agent):
    (agent.folder / "set").mkdir()
    for name in ("1_given_up", "2_never_recorded", "3_built"):
        (agent.folder / "set" / f"{name}.py").write_text(agent.problem.read_text())
    recorded = agent.folder / "recorded"
    build = ToolCall(id="a", name="compile_kernel", arguments=json.dumps({"source": GOOD}))
    record(recorded, "1_given_up", Reply(text="I give up.", model="some-model"))
    record(recorded, "3_built", Reply(tool_calls=(build,), model="some-model"))
    (recorded / "batch.json").write_text("{}")
    done = agent("batch", "set", "--recorded", "recorded", "--max-turns", "1", *CPU)
    assert done.code == 1, done.text
    assert "2_never_recorded.py: not run: recorded holds no recorded run of 2_never_recorded." in done.out
    results = {
        read_header(path.parent).problem: json.loads(path.read_text()) for path in agent.run.glob("*/result.json")
    }
    assert {name: result["candidates"] for name, result in results.items()} == {"1_given_up": 0, "3_built": 1}


@pytest.mark.parametrize(
    ("folder", "said"),
    [
        ("nowhere", "There is no folder nowhere."),
        ("empty", "empty holds no run folder with a reply in it."),
        ("other", "runs of: layer"),
        ("silent", "silent holds no run folder with a reply in it."),
    ],
)
def test_a_batch_without_a_recording_of_any_problem_ends_before_it_begins(agent: Agent, folder: str, said: str):
    (agent.folder / "empty").mkdir()
    record(agent.folder / "other", "layer", Reply(text="I give up.", model="some-model"))
    record(agent.folder / "silent", "layer")
    done = agent("batch", str(agent.problem), "--recorded", folder, *CPU)
    assert done.code == 2
    assert said in done.err
    assert not agent.runs


def timed(baselines: dict[str, float]) -> RunResult:
    """A bundled result as if its winner had been compared with `baselines`."""
    path = Path(__file__).parents[2] / "transcripts/examples/conv_mish_mish_h200/result.json"
    result = RunResult.model_validate_json(path.read_bytes())
    confirmed = result.confirmation
    assert confirmed is not None
    assert confirmed.timing is not None
    timing = confirmed.timing.model_copy(update={"baselines_us": baselines})
    return result.model_copy(update={"confirmation": confirmed.model_copy(update={"timing": timing})})


def printed(*results: RunResult) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(_table([Row(problem=f"p{n}", result=result) for n, result in enumerate(results)]))
    return capture.get()


def test_the_table_names_a_best_baseline_only_where_several_were_timed():
    alone, both = timed({"eager": 2.0}), timed({"eager": 2.0, "compile": 3.0})
    assert "over eager" in printed(alone)
    assert "best baseline" not in printed(alone)
    assert "over the best baseline" in printed(alone, both)
    assert "1.55x (eager alone)" in printed(alone, both)
    assert "1.55x (eager)" in printed(alone, both)


def test_the_end_of_a_run_names_a_best_baseline_only_where_several_were_timed():
    from agent.cli.solve import print_outcome
    from agent.session import Solved

    def said(result: RunResult) -> str:
        console = Console(width=200)
        with console.capture() as capture:
            print_outcome(console, Solved(Path("runs/one"), result))
        return capture.get()

    assert "Speed-up over the reference (eager): " in said(timed({"eager": 2.0}))
    assert "best baseline" not in said(timed({"eager": 2.0}))
    both = timed({"eager": 2.0, "compile": 3.0})
    assert "Speed-up over the reference (eager, the best of eager and compile): 1.55x" in said(both)
    compiled = {"best_baseline": "compile", "speedup_over_best": 1.2}
    text = said(both.model_copy(update={**compiled, "speedup_over_best_low": 1.19, "speedup_over_best_high": 1.21}))
    assert "Speed-up over the best baseline (compile, of eager and compile): 1.2x (95% interval 1.19 to 1.21)" in text
    assert "Over the reference (eager): 1.55x (95% interval " in text


def test_the_end_of_a_run_is_told_in_whole_lines_whatever_its_folder_is_named():
    from agent.cli.solve import print_outcome
    from agent.session import Solved

    console = Console(width=30)
    with console.capture() as capture:
        print_outcome(console, Solved(Path("runs [b] of [/i] mine/one"), timed({"eager": 2.0, "compile": 3.0})))
    lines = capture.get().splitlines()
    assert "Kernel: runs [b] of [/i] mine/one/solution.py" in lines
    assert "Review: agent replay runs [b] of [/i] mine/one" in lines
    assert next(line for line in lines if line.startswith("Speed-up")).endswith(" ms")
