"""Buffers that forward changes: found, put back after every forward, compared with what a candidate leaves there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tests.cases.judging import HERE, CaseEvaluator, judge, load_cases, open_evaluator, problem_of
from tools.judge.bench import Bench
from tools.judge.inputs import OWN
from tools.judge.module_state import changed, counters, steady, update_rule
from tools.judge.outcome import Rules
from tools.judge.reference import oracle_model
from tools.judge.soundness import examine
from tools.types import Finding

CASES = {case.name: case for case in load_cases(HERE, "cpu")}


class Counting(torch.nn.Module):
    """Puts another tensor in the place of its buffer, as many do."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(2))
        self.register_buffer("passing", torch.zeros(2), persistent=False)
        self.calls: torch.Tensor
        self.passing: torch.Tensor

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls = self.calls + 1
        self.passing += 1
        if x.numel() == 0:
            raise ValueError("nothing there")
        return x + self.calls.sum()


def problem(name: str) -> str:
    return (HERE / f"problems/{name}.py").read_text()


def after_one(model: torch.nn.Module, x: torch.Tensor) -> torch.nn.Module:
    used = oracle_model(model).float()
    used(x)
    return used


def test_what_a_forward_changes_is_found():
    norm, x = torch.nn.BatchNorm1d(3), torch.randn(8, 3)
    names = ("running_mean", "running_var", "num_batches_tracked")
    assert changed(norm, after_one(norm, x)) == names
    assert changed(norm.eval(), after_one(norm, x)) == ()
    assert changed(torch.nn.Linear(3, 3), after_one(torch.nn.Linear(3, 3), x)) == ()
    # What is not in a state_dict has no name that a candidate could share.
    assert changed(Counting(), after_one(Counting(), x)) == ("calls",)


def test_a_module_gets_back_what_it_had():
    model, after = Counting(), dict[str, torch.Tensor]()
    tensor = model.calls
    for _ in range(3):
        with steady(model, ["calls"], after):
            model(torch.zeros(3))
        assert after["calls"].tolist() == [1, 1]
        assert model.calls is tensor
        assert tensor.tolist() == [0, 0]
    with pytest.raises(ValueError), steady(model, ["calls"], after):
        model(torch.zeros(0))
    assert model.calls.tolist() == [0, 0]
    assert after == {}


def test_a_counter_matters_where_there_is_no_momentum():
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(3), torch.nn.BatchNorm2d(3, momentum=None))
    assert counters(model) == {"0.num_batches_tracked"}
    assert "0.9 of its old value plus 0.1 of the batch's mean" in update_rule(model, "0.running_mean")
    assert "average" in update_rule(model, "1.running_var")
    assert update_rule(Counting(), "calls") == ""


def test_every_forward_of_the_reference_starts_from_the_same_state():
    bench = Bench(problem("batch_norm_average"), "full", "cpu")
    try:
        assert bench.problem.changing == ("bn.running_mean", "bn.running_var", "bn.num_batches_tracked")
        for index in range(2):
            mean, variance, count = bench.trial(OWN, index).state
            x = bench.trial(OWN, index).tensors[0].double()
            assert count.after.item() == count.truth.item() == 1
            assert torch.allclose(mean.truth, x.mean((0, 2, 3)), rtol=1e-12)
            assert torch.allclose(variance.truth, x.var((0, 2, 3)), rtol=1e-12)
            assert 0 < variance.error.relative < 1e-6
        assert bench.model.state_dict()["bn.num_batches_tracked"].item() == 0
    finally:
        bench.close()


def test_buffers_that_count_are_said_of_the_problem():
    bench = Bench(problem("batch_norm_relu"), "full", "cpu")
    try:
        (note,) = [note for note in examine(bench, Rules()).notes if note.code == "reference_state"]
        assert note.summary.startswith("forward changes buffers (bn.running_mean, bn.running_var), and")
        plain = examine(bench, Rules(allclose=(1e-4, 1e-4))).notes
        assert "reference_state" not in {note.code for note in plain}
    finally:
        bench.close()


@pytest.mark.parametrize("name", ["batch_norm_eval", "row_softmax"])
def test_where_nothing_changes_nothing_is_kept(name: str):
    bench = Bench(problem(name), "full", "cpu")
    try:
        assert bench.problem.changing == ()
        assert bench.trial(OWN, 0).state == []
    finally:
        bench.close()


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[CaseEvaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    with open_evaluator(HERE, CASES["batch_norm_relu_fused"], cache.mkdir("agent-builds")) as opened:
        assert isinstance(opened, CaseEvaluator)
        yield opened


def said(evaluator: CaseEvaluator, name: str, folder: Path) -> list[Finding]:
    """The findings on a case, without its timing."""
    case = CASES[name].model_copy(update={"timed": False})
    evaluator.turn_to(problem_of(HERE, case))
    judged = judge(evaluator, HERE, case, folder)
    assert judged.right
    return judged.findings


MOVED = "the reference's forward makes it 0.9 of its old value plus 0.1 of the batch's"


@pytest.mark.parametrize(
    ("name", "code", "words"),
    [
        ("batch_norm_relu_static", "state_not_updated", [f"leaves the buffer bn.running_mean as it was; {MOVED} mean"]),
        ("batch_norm_relu_no_buffers", "state_not_updated", ["stands for the buffer bn.running_mean", MOVED]),
        ("batch_norm_relu_biased", "wrong_state", ["buffer bn.running_var: 13 of 13", f"{MOVED} variance", "n - 1"]),
        ("batch_norm_relu_overwritten", "wrong_state", ["buffer bn.running_mean: 13 of 13"]),
        ("batch_norm_average_uncounted", "state_not_updated", ["bn.num_batches_tracked", "adds 1 to it"]),
        ("running_scale_forgotten", "state_not_updated", ["buffer scale", "changes 1 of its 1 elements", "from 1 to"]),
    ],
)
def test_a_wrong_state_is_named(evaluator: CaseEvaluator, tmp_path: Path, name: str, code: str, words: list[str]):
    first = said(evaluator, name, tmp_path)[0]
    assert first.code == code
    assert first.severity == "error"
    assert all(word in first.summary for word in words), first.summary


@pytest.mark.parametrize("name", ["batch_norm_relu_static", "batch_norm_relu_no_buffers"])
def test_every_wrong_buffer_is_named_at_once(evaluator: CaseEvaluator, tmp_path: Path, name: str):
    errors = [f for f in said(evaluator, name, tmp_path) if f.severity == "error"]
    assert [f.observed["buffer"] for f in errors] == ["bn.running_mean", "bn.running_var"]


def test_an_honest_one_is_told_what_could_not_be_compared(evaluator: CaseEvaluator, tmp_path: Path):
    assert said(evaluator, "batch_norm_relu_fused", tmp_path / "1") == []
    (counter,) = said(evaluator, "batch_norm_relu_functional", tmp_path / "2")
    assert (counter.code, counter.severity) == ("state_counter", "note")
    notes = said(evaluator, "batch_norm_relu_other_names", tmp_path / "3")
    assert [(f.code, f.severity, f.observed["buffer"]) for f in notes] == [
        ("state_not_matched", "note", "bn.running_mean"),
        ("state_not_matched", "note", "bn.running_var"),
    ]
    assert "it may be mean or variance here" in notes[0].summary
