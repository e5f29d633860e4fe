"""One process or two, and what both must say: scripted timings, each of a known truth."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tools.judge import duel as duels
from tools.judge.bench import Bench
from tools.judge.client import Reply
from tools.judge.duel import Measured, duel
from tools.judge.rounds import SIDES, Clock, Rounds
from tools.judge.session import Session
from tools.types import SpeedClaim

EXCHANGE_US = 300.0


@dataclass
class Script(Rounds):
    """Rounds with what a call in a row of the candidate's takes, by series; the last one lasts."""

    in_rows: list[float] = field(default_factory=list)


def timed(
    candidate: float, reference: float = 100.0, *, hidden: float = 0.0, in_rows: tuple[float, ...] = ()
) -> Rounds:
    """Thirty rounds with a spread of 0.2%. `hidden` us a call pass in the exchange with the candidate alone."""
    found = Script(in_rows=list(in_rows) or [candidate])
    for i in range(30):
        us = (candidate, reference, reference)
        said = dict(zip(SIDES, (t * (1 + 0.001 * (i % 3 - 1)) for t in us), strict=True))
        replies = {side: Reply(outputs={}, tensors=[], us=us, host_us=1.0, drained_us=us) for side, us in said.items()}
        walls = {side: us + EXCHANGE_US + (hidden if side == "candidate" else 0) for side, us in said.items()}
        found.add(replies, walls)
    return found


class ScriptedWorker:
    def close(self) -> None:
        pass


class ScriptedSession:
    timed = SimpleNamespace(ahead=[])
    worker = ScriptedWorker()

    def load(self) -> None:
        pass


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Callable[..., tuple[Measured, int]]:
    """`play(rounds, …)`: a duel in which process after process gives those rounds, and how many of them it took."""

    def play(*script: Rounds) -> tuple[Measured, int]:
        class ScriptedTimer:
            bench: Any = SimpleNamespace(device="cuda")
            rounds: Iterator[Rounds] = iter(script)
            started = 0

            def __init__(self, *_args: object, **_more: object) -> None:
                pass

            def run(self, _session: Session, clock: Clock = "device", **_more: object) -> Rounds:
                return next(self.rounds)

            def hot(self, _session: Session) -> list[Reply]:
                return [Reply(outputs={}, tensors=[], us=90.0, host_us=1.0, drained_us=90.0)] * 10

            def series(self, _session: Session, rounds: Rounds) -> tuple[float, float]:
                assert isinstance(rounds, Script)
                mine = rounds.in_rows.pop(0) if len(rounds.in_rows) > 1 else rounds.in_rows[0]
                return mine, float(rounds.times("reference").min())

        def start() -> Session:
            ScriptedTimer.started += 1
            return cast("Session", ScriptedSession())

        monkeypatch.setattr(duels, "Timer", ScriptedTimer)
        reference = cast("Session", ScriptedSession())
        found = duel(cast("Bench", SimpleNamespace(device="cuda")), start, (reference, reference), None, lambda: "")
        return found, ScriptedTimer.started

    return play


def test_a_clear_win_takes_one_process(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(50.0))
    assert (found.claim, processes) == (SpeedClaim.FASTER, 1)
    assert found.speedup.value == pytest.approx(2.0)


def test_what_both_processes_say_of_a_close_call_is_claimed(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(95.0), timed(95.0))
    assert (found.claim, processes) == (SpeedClaim.FASTER, 2)
    assert len(found.rounds) == 60


def test_processes_that_disagree_claim_nothing(play: Callable[..., tuple[Measured, int]]):
    found, _ = play(timed(95.0), timed(102.0))
    assert found.claim is SpeedClaim.INDISTINGUISHABLE
    assert found.null > 0.07


def test_a_process_whose_exchanges_are_slow_by_chance_accuses_nobody(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(50.0, hidden=400.0), timed(50.0))
    assert found.mismatch is None
    assert (found.claim, found.rounds.clock, processes) == (SpeedClaim.FASTER, "device", 2)


def test_a_clock_that_lies_in_every_process_is_not_believed(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(50.0, hidden=400.0), timed(50.0, hidden=400.0))
    assert found.mismatch is not None
    assert found.mismatch.code == "clock_mismatch"
    assert (found.claim, found.rounds.clock, processes) == (SpeedClaim.SLOWER, "wall", 2)


def test_rows_that_are_slow_now_and_then_accuse_nobody(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(50.0, in_rows=(110.0, 109.0, 51.0)))
    assert found.mismatch is None
    assert (found.claim, found.rounds.clock, processes) == (SpeedClaim.FASTER, "device", 1)
    assert found.in_a_row is not None and found.in_a_row[0] == 51.0


def test_rows_that_are_slow_as_long_as_a_process_lives_accuse_nobody(play: Callable[..., tuple[Measured, int]]):
    found, processes = play(timed(50.0, in_rows=(110.0,)), timed(110.0), timed(50.0))
    assert found.mismatch is None
    assert (found.claim, found.rounds.clock, processes) == (SpeedClaim.FASTER, "device", 2)


def test_a_clock_that_rows_give_the_lie_in_every_process_is_not_believed(play: Callable[..., tuple[Measured, int]]):
    lie, truth = timed(50.0, in_rows=(130.0,)), timed(130.0)
    found, processes = play(lie, truth, timed(50.0, in_rows=(130.0,)), truth)
    assert found.mismatch is not None
    assert found.speedup.value == pytest.approx(100 / 130)
    assert (found.claim, processes) == (SpeedClaim.SLOWER, 2)
