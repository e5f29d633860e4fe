"""`tune_kernel` over a real evaluator: one call, a table, and a winner that stood the full check."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "judge"))

from sweep_cases import SOURCE, repeated

from problems import load_problem
from prompts import render
from tools.evaluator import Evaluator, EvaluatorError, EvaluatorSettings
from tools.reports import kernels_of
from tools.toolbox import Refusal, Submitted, Toolbox
from tools.tuning import SweepRow
from tools.tuning.tuner import TuneReport
from tools.types import BuildResult, Verdict


class Unlucky(Evaluator):
    """An evaluator whose judge is killed before each of the next `failures` sweeps."""

    failures = 0

    def sweep(self, variants: object) -> list[SweepRow]:
        if self.failures:
            self.failures -= 1
            self.facts()
            assert self._judge is not None
            os.kill(self._judge.pid, signal.SIGKILL)
        return super().sweep(cast("list[tuple[str, BuildResult]]", variants))


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Unlucky]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", size="small", cache_dir=cache.mkdir("agent-builds"))
    with Unlucky(load_problem("elementwise_chain"), settings) as evaluator:
        yield evaluator


@pytest.fixture
def stages() -> list[tuple[str, str]]:
    return []


@pytest.fixture
def toolbox(evaluator: Unlucky, tmp_path: Path, stages: list[tuple[str, str]]) -> Toolbox:
    evaluator.failures = 0
    return Toolbox(evaluator, tmp_path / "kernels", on_stage=lambda kernel, stage: stages.append((kernel, stage)))


def tuned(toolbox: Toolbox, **arguments: object) -> tuple[TuneReport, str]:
    record = toolbox.call("tune_kernel", json.dumps(arguments))
    assert isinstance(record, TuneReport), record
    return record, render(record.kind, report=record)


def test_the_fastest_correct_variant_is_found_in_one_call(toolbox: Toolbox, stages: list[tuple[str, str]]):
    space = {"REPEAT": [1, 12], "MODE": ["honest", "remembers weights"], "BROKEN": [False, True]}
    report, text = tuned(
        toolbox,
        source=SOURCE,
        space=space,
        constraints=["not BROKEN or REPEAT == 12", "MODE == 'honest' or REPEAT == 1"],
    )
    # 1 honest, 1 remembering, 12 honest (as sent), 12 broken.
    assert (report.combinations, report.allowed, len(report.variants)) == (8, 4, 4)
    rows = {(row.values["REPEAT"], row.values["MODE"], row.values["BROKEN"]): row for row in report.variants}
    sent, broken = rows[12, "honest", False], rows[12, "honest", True]
    assert sent.as_sent and not broken.as_sent
    assert (sent.verdict, sent.kernel) == (None, None)
    assert (broken.built, broken.verdict, broken.candidate_us) == (False, Verdict.LOAD_ERROR, None)
    assert broken.problem is not None and "does not even load" in broken.problem

    # Whichever of the two fast ones was ahead, the one that remembers weights is not taken.
    best = report.best
    assert best is not None and best.timing is not None
    assert best.verdict is Verdict.CORRECT
    candidate = toolbox.candidates.get(best.kernel)
    assert candidate is not None
    assert candidate.source == repeated(1)
    assert candidate.state.edited_from == report.kernel == "k1"
    assert toolbox.candidates.best == candidate
    assert rows[1, "honest", False].kernel == best.kernel
    remembering = rows[1, "remembers weights", False]
    assert remembering.verdict in (None, Verdict.WRONG_RESULT)
    assert (remembering.verdict is None) == (remembering.kernel is None)

    named = [stage for kernel, stage in stages if "variants of k1" in kernel]
    assert named == ["build", "sweep"]
    assert set(kernels_of(report)) == {"k1", *(row.kernel for row in report.variants if row.kernel)}
    for expected in ("| REPEAT | MODE | BROKEN |", "does not even load", "(as sent)", f"**{best.kernel}**", "line 7"):
        assert expected in text, text
    assert isinstance(toolbox.call("submit", json.dumps({"id": best.kernel})), Submitted)


def test_a_source_that_is_the_best_as_it_is_keeps_its_id(toolbox: Toolbox):
    toolbox.candidates.add(repeated(1))
    report, text = tuned(toolbox, id="k1", space={"REPEAT": [1, 12]})
    assert report.best is not None
    assert report.best.kernel == report.kernel == "k1"
    assert toolbox.candidates.ids == ["k1"]
    assert "the source as it was sent" in text


def test_where_nothing_is_correct_nothing_is_the_best(toolbox: Toolbox):
    report, text = tuned(toolbox, source=repeated(1, "wrong"), space={"REPEAT": [1, 2]})
    assert report.best is None
    assert {row.verdict for row in report.variants} == {Verdict.WRONG_RESULT}
    assert toolbox.candidates.best is None
    assert "No variant is known to be correct" in text


def test_what_was_cut_is_told(toolbox: Toolbox):
    report, text = tuned(toolbox, source=repeated(1, "wrong"), space={"REPEAT": list(range(2, 20))}, max_variants=1)
    assert (report.allowed, len(report.variants)) == (18, 2)
    assert "max_variants" in text


def test_a_judge_that_breaks_down_once_is_replaced_and_twice_is_nobodys_fault(toolbox: Toolbox, evaluator: Unlucky):
    toolbox.candidates.add(repeated(1, "wrong"))
    evaluator.failures = 1
    assert tuned(toolbox, id="k1", space={"REPEAT": [1]})[0].judge_failure is None
    evaluator.failures = 2
    report, text = tuned(toolbox, id="k1", space={"REPEAT": [1]})
    assert report.judge_failure is not None
    assert (report.best, report.variants) == (None, [])
    assert "no fault of the source" in text
    evaluator.failures = 2
    with pytest.raises(EvaluatorError):
        toolbox.call("tune_kernel", json.dumps({"id": "k1", "space": {"REPEAT": [1]}}))


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        ({"space": {"TILE": [1]}}, "parameter_not_defined", "#define TILE 64"),
        ({"space": {"REPEAT": [1]}, "constraints": ["REPEAT && 1"]}, "bad_constraint", "REPEAT && 1"),
        ({"space": {"REPEAT": [1]}, "constraints": ["TILE > 1"]}, "bad_constraint", "no parameter TILE"),
        ({"space": {"REPEAT": [0]}, "constraints": ["1 / REPEAT > 1"]}, "bad_constraint", "REPEAT = 0"),
        ({"space": {"REPEAT": [1, 2]}, "constraints": ["REPEAT > 2"]}, "nothing_allowed", "REPEAT > 2"),
        ({"space": {}}, "bad_arguments", "space"),
        ({"space": {"REPEAT": []}}, "bad_arguments", "space.REPEAT"),
        ({"space": {"REPEAT": 3}}, "bad_arguments", "space.REPEAT"),
        ({"space": {"REPEAT": [1]}, "max_variants": 1000}, "bad_arguments", "max_variants"),
    ],
)
def test_what_cannot_be_tuned_is_answered_without_the_evaluator(
    tmp_path: Path, arguments: dict[str, object], code: str, said: str
):
    # A call that reaches an evaluator fails on the None.
    toolbox = Toolbox(cast("Evaluator", None), tmp_path / "kernels")
    record = toolbox.call("tune_kernel", json.dumps({"source": SOURCE, **arguments}))
    assert isinstance(record, Refusal)
    assert record.code == code
    assert said in render(record.kind, report=record)
