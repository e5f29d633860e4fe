"""What identical runs say of a kernel: scripted outputs, each of a known truth."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from tools.judge import repeats
from tools.judge.check import Check
from tools.judge.outcome import Failed, Outcome
from tools.types import Verdict

RUNS = repeats.IDENTICAL_RUNS


@pytest.fixture(autouse=True)
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(repeats.IDENTICAL_SECONDS, "cpu", 600.0)


def judged(monkeypatch: pytest.MonkeyPatch, *outputs: float) -> tuple[Verdict, str, int]:
    """Verdict, code of the first finding and runs of a kernel that gives these numbers, the last of them ever after;
    1.0 is right."""
    ran: list[float] = []

    def execute(*_: object) -> float:
        ran.append(outputs[min(len(ran), len(outputs) - 1)])
        return ran[-1]

    def compared(_bench: object, _trial: object, reply: float, *_: object) -> Any:
        return SimpleNamespace(passed=reply == 1.0, findings=[])

    monkeypatch.setattr(repeats, "collect", lambda *args: [torch.tensor([args[2]])])
    monkeypatch.setattr(repeats, "compare", compared)
    outcome = Outcome(verdict=Verdict.CORRECT)
    bench = SimpleNamespace(device="cpu", trial=lambda *_: None)
    check = SimpleNamespace(bench=bench, execute=execute, outcome=outcome, rules=SimpleNamespace(demanded=None))
    try:
        repeats.identical_runs(cast("Check", check))
    except Failed as failed:
        return failed.verdict, failed.findings[0].code, len(ran)
    return outcome.verdict, "", len(ran)


def test_a_kernel_that_gives_the_same_bits_is_left_alone(monkeypatch: pytest.MonkeyPatch):
    assert judged(monkeypatch, 1.0) == (Verdict.CORRECT, "", RUNS)


def test_another_answer_from_some_call_on_is_counting(monkeypatch: pytest.MonkeyPatch):
    assert judged(monkeypatch, *[1.0] * 6, 2.0) == (Verdict.CHEATING, "call_counting", RUNS)
    assert judged(monkeypatch, *[1.0] * (RUNS - 1), 2.0) == (Verdict.CHEATING, "call_counting", RUNS + 2)


def test_a_race_that_shows_in_the_last_run_is_no_counting(monkeypatch: pytest.MonkeyPatch):
    verdict, code, _ = judged(monkeypatch, *[1.0] * (RUNS - 1), 2.0, 1.0)
    assert (verdict, code) == (Verdict.NONDETERMINISTIC, "race")
    verdict, code, _ = judged(monkeypatch, *[1.0] * (RUNS - 2), 2.0, 3.0, 4.0)
    assert (verdict, code) == (Verdict.NONDETERMINISTIC, "race")


def test_what_lies_in_memory_is_told_from_chance(monkeypatch: pytest.MonkeyPatch):
    over_poisons = [1.0 if (run // 2) % 2 == 0 else 2.0 for run in range(RUNS)]
    verdict, code, _ = judged(monkeypatch, *over_poisons, 1.0)
    assert (verdict, code) == (Verdict.NONDETERMINISTIC, "poison_dependent")
    verdict, code, _ = judged(monkeypatch, 1.0, 1.0, 2.0, 1.0)
    assert (verdict, code) == (Verdict.NONDETERMINISTIC, "race")
