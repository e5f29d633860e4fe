"""The tools over a real evaluator: what runs, what is known already, and what happens when the judge itself dies."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from agent_cases import GOOD, PROBLEM, WRONG, WRONG_TO_GOOD

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorError, EvaluatorSettings
from tools.toolbox import KernelReport, Refusal, Submitted, Toolbox
from tools.types import CorrectnessResult, Verdict


class Mortal(Evaluator):
    """An evaluator whose judge is killed before each of the next `deaths` checks."""

    deaths = 0

    def check(self, source: str, build: object) -> CorrectnessResult:
        if self.deaths:
            self.deaths -= 1
            self.facts()
            assert self._judge is not None
            os.kill(self._judge.pid, signal.SIGKILL)
        return super().check(source, build)  # pyright: ignore[reportArgumentType]


@pytest.fixture(scope="module")
def evaluator(build_cache: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Mortal]:
    path = tmp_path_factory.mktemp("problem") / "chain.py"
    path.write_text(PROBLEM)
    settings = EvaluatorSettings(device="cpu", size="small", cache_dir=build_cache)
    with Mortal(load_problem(str(path)), settings) as evaluator:
        yield evaluator


@pytest.fixture
def stages() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def toolbox(evaluator: Mortal, tmp_path: Path, stages: list[tuple[str, str]]) -> Toolbox:
    evaluator.deaths = 0
    return Toolbox(evaluator, tmp_path / "kernels", on_stage=lambda kernel, stage: stages.append((kernel, stage)))


def report(toolbox: Toolbox, tool: str, **arguments: object) -> KernelReport:
    record = toolbox.call(tool, json.dumps(arguments))
    assert isinstance(record, KernelReport), record
    return record


def test_each_tool_goes_as_far_as_it_says_and_runs_nothing_twice(toolbox: Toolbox, stages: list[tuple[str, str]]):
    built = report(toolbox, "compile_kernel", source=GOOD)
    assert (built.verdict, built.correctness, built.timing) == (None, None, None)
    checked = report(toolbox, "run_correctness", id="k1")
    assert (checked.verdict, checked.timing) == (Verdict.CORRECT, None)
    timed = report(toolbox, "time_kernel", id="k1")
    assert timed.timing is not None
    assert timed.leads
    assert stages == [("k1", "build"), ("k1", "check"), ("k1", "time")]

    again = report(toolbox, "evaluate_kernel", source=GOOD)
    assert (again.kernel, again.repeated, again.timing) == ("k1", True, timed.timing)
    assert len(stages) == 3
    anew = report(toolbox, "time_kernel", id="k1")
    assert anew.timing != timed.timing
    assert not anew.repeated
    assert stages[3:] == [("k1", "time")]

    submitted = toolbox.call("submit", json.dumps({"id": "k1"}))
    assert isinstance(submitted, Submitted)
    assert submitted.fastest is None


def test_an_edit_is_evaluated_at_once_and_knows_where_it_comes_from(toolbox: Toolbox):
    assert report(toolbox, "evaluate_kernel", source=WRONG).verdict is Verdict.WRONG_RESULT
    mended = report(toolbox, "edit_kernel", id="k1", edits=[WRONG_TO_GOOD])
    assert (mended.kernel, mended.edited_from, mended.verdict) == ("k2", "k1", Verdict.CORRECT)
    refused = toolbox.call("submit", json.dumps({"id": "k1"}))
    assert isinstance(refused, Refusal)
    assert refused.report is not None
    assert refused.report.verdict is Verdict.WRONG_RESULT


def test_a_judge_that_dies_once_is_replaced(toolbox: Toolbox, evaluator: Mortal):
    evaluator.deaths = 1
    assert report(toolbox, "run_correctness", source=GOOD).verdict is Verdict.CORRECT


def test_a_candidate_on_which_the_judge_dies_twice_is_set_aside_and_not_blamed(toolbox: Toolbox, evaluator: Mortal):
    evaluator.deaths = 2
    assert report(toolbox, "run_correctness", source=GOOD).verdict is Verdict.JUDGE_ERROR
    # Asked again, it is judged again: the fault was ours.
    assert report(toolbox, "run_correctness", id="k1").verdict is Verdict.CORRECT


def test_a_judge_that_dies_on_every_candidate_ends_the_run(toolbox: Toolbox, evaluator: Mortal):
    evaluator.deaths = 4
    assert report(toolbox, "run_correctness", source=GOOD).verdict is Verdict.JUDGE_ERROR
    with pytest.raises(EvaluatorError):
        toolbox.call("run_correctness", json.dumps({"source": WRONG}))


def test_a_build_whose_library_is_gone_is_made_again(toolbox: Toolbox, evaluator: Mortal):
    built = report(toolbox, "compile_kernel", source=GOOD)
    assert built.build is not None
    gone = built.build.model_copy(
        update={"modules": [m.model_copy(update={"library": m.library + ".gone"}) for m in built.build.modules]}
    )
    toolbox.candidates.update("k1", build=gone)
    assert report(toolbox, "run_correctness", id="k1").verdict is Verdict.CORRECT
