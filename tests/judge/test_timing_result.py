"""What is said beside a speed-up, by what its rounds and rows were: known timings, each with the caveat it needs."""

from __future__ import annotations

import pytest

from tools.device.floor import Floor
from tools.judge import statistics
from tools.judge.client import Reply
from tools.judge.duel import Measured
from tools.judge.records import timing_result
from tools.judge.rounds import SIDES, Rounds
from tools.types import Evidence, SandboxLevel, TimingResult

FLOOR = Floor(us=1.0, limited_by="memory", memory_us=1.0, compute_us=0.1, datasheet_us=None, cached=False)
EVIDENCE = Evidence(
    device="cpu", device_name="a CPU", torch_version="2.13", sandbox=SandboxLevel.NAMESPACES, date="2026-11-30"
)
HOT = [Reply(outputs={}, tensors=[], us=40.0, host_us=40.0, drained_us=40.0)] * 3


def told(
    mine: float, in_a_row: tuple[float, float] | None, *, bystanders: float = 0.0, device: str = "cpu"
) -> TimingResult:
    """The result for a candidate of `mine` us a call against a reference of 100."""
    rounds = Rounds(device=device, bystanders=bystanders)
    for i in range(30):
        us = {side: t * (1 + 0.001 * (i % 3)) for side, t in zip(SIDES, (mine, 100.0, 100.0), strict=True)}
        rounds.add({s: Reply(outputs={}, tensors=[], us=t, host_us=1.0, drained_us=t) for s, t in us.items()}, us)
    speedup = statistics.ratio(rounds.times("reference"), rounds.times("candidate"))
    claim = statistics.claim(speedup, 0.01)
    measured = Measured(rounds, (HOT, HOT), speedup, 0.01, claim, None, in_a_row=in_a_row)
    return timing_result(measured, FLOOR, {}, None, "cuda" if device == "cuda" else "cpu", 1.0, EVIDENCE, [])


def codes(result: TimingResult) -> set[str]:
    return {finding.code for finding in result.findings}


def test_a_plain_win_needs_no_caveat():
    result = told(50.0, (45.0, 90.0))
    assert codes(result) == set()
    assert (result.in_a_row_us, result.reference_in_a_row_us) == (45.0, 90.0)
    assert result.speedup.value == pytest.approx(2.0)


def test_who_wins_by_itself_and_loses_in_a_row_is_told():
    (found,) = told(70.0, (60.0, 50.0)).findings
    assert (found.code, found.severity) == ("slower_in_a_row", "warning")
    assert found.observed == {"us": 60.0, "reference_us": 50.0}
    assert "60.0 us" in found.summary


def test_a_row_about_as_quick_as_the_references_is_none():
    assert codes(told(70.0, (54.0, 50.0))) == set()


def test_who_claims_no_win_is_not_told_that_it_loses():
    assert codes(told(130.0, (120.0, 50.0))) == set()


def test_without_rows_nothing_is_said_of_them():
    result = told(70.0, None)
    assert codes(result) == set()
    assert result.in_a_row_us is None


@pytest.mark.parametrize(("device", "expected"), [("cpu", {"busy_machine"}), ("cuda", set[str]())])
def test_other_programs_matter_where_processors_are_what_is_timed(device: str, expected: set[str]):
    assert codes(told(50.0, None, bystanders=0.3, device=device)) == expected


def test_a_quiet_machine_is_not_called_busy():
    assert codes(told(50.0, None, bystanders=0.05)) == set()
