"""Sweeps over real variants: what is wrong is named, nobody else suffers, and the slow ones lose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from sweep_cases import repeated

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.judge.session import Program
from tools.judge.sweep import FIRST_ROUNDS, LEAST_ROUNDS, MOST_SEATS, Contender, running, survivors
from tools.tuning import SweepRow
from tools.types import Verdict


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", size="small", cache_dir=cache.mkdir("agent-builds"))
    with Evaluator(load_problem("elementwise_chain"), settings) as evaluator:
        yield evaluator


def swept(evaluator: Evaluator, folder: Path, *sources: str) -> list[SweepRow]:
    builds = evaluator.build_all([(source, folder / str(n)) for n, source in enumerate(sources)])
    assert all(build.ok for build in builds), builds
    return evaluator.sweep(list(zip(sources, builds, strict=True)))


@pytest.mark.slow
def test_the_fastest_of_many_is_found_and_the_slow_ones_take_no_more_samples_than_it(
    evaluator: Evaluator, tmp_path: Path
):
    # More than may be loaded at once; the fastest is in the middle.
    # The others take so long that a busy machine makes none of them look faster.
    # It may end the first rung before its last round, for some of them and not for others.
    repeats = [20, 24, 36, 22, 1, 26, 28, 30, 32, 34]
    assert len(repeats) > MOST_SEATS
    rows = swept(evaluator, tmp_path, *map(repeated, repeats))
    assert [row.verdict for row in rows] == [None] * len(repeats)
    best = max(range(len(rows)), key=lambda n: (rows[n].rungs, rows[n].speedup.value if rows[n].speedup else 0))
    assert repeats[best] == 1
    for row in rows:
        assert LEAST_ROUNDS <= row.samples <= max(rows[best].samples, FIRST_ROUNDS)
        assert row.rungs <= rows[best].rungs
        assert row.speedup is not None and row.candidate_us is not None
        assert row.speedup.low <= row.speedup.value <= row.speedup.high
        assert row.candidate_us.low <= row.candidate_us.value <= row.candidate_us.high


def contender(*mine: float) -> Contender:
    return Contender(Program("", []), mine=list(mine), reference=[100.0] * len(mine))


def test_the_faster_half_survives_a_rung_best_first():
    field = [contender(us, us + 1, us + 2) for us in (14, 10, 13, 11, 12)]
    assert survivors(field) == [field[1], field[3], field[4]]
    # Two remain in the race as long as either may win it.
    assert survivors(field[1:3]) == [field[1]]
    assert survivors([contender(10, 12), contender(11, 13)])[1].mine == [11, 13]


def test_what_cannot_be_the_fastest_any_more_is_out():
    quick, close, slow, slowest = contender(10, 10, 10), contender(10.1, 10.1), contender(12, 12), contender(20, 20)
    assert survivors([slowest, slow, close, quick]) == [quick, close]
    noisy = contender(8, 12, 16)
    assert survivors([quick, noisy, slow, slowest]) == [quick, noisy]


def test_a_variant_of_twice_the_time_is_timed_no_further_in_a_rung():
    quick, slow, failed = contender(10, 10, 10), contender(21, 21, 21), contender(1, 1, 1)
    failed.fail(Verdict.CHEATING, None)
    assert running([quick, slow, failed], LEAST_ROUNDS - 1) == [quick, slow]
    assert running([quick, slow, failed], LEAST_ROUNDS) == [quick]


def test_the_first_verdict_stays_and_leaves_no_time():
    one = contender(10, 10, 10)
    assert one.row().candidate_us is not None
    one.fail(Verdict.RUNTIME_ERROR, None)
    one.fail(Verdict.SANDBOX_VIOLATION, None)
    assert one.row() == SweepRow(verdict=Verdict.RUNTIME_ERROR)


def test_what_is_wrong_with_a_variant_is_named_and_costs_the_others_nothing(evaluator: Evaluator, tmp_path: Path):
    faults = {
        "wrong": Verdict.WRONG_RESULT,
        "raises": Verdict.RUNTIME_ERROR,
        "dies": Verdict.RUNTIME_ERROR,
        "leaves": Verdict.CHEATING,
        "writes": Verdict.SANDBOX_VIOLATION,
        "wrong when timed": Verdict.CHEATING,
    }
    rows = swept(evaluator, tmp_path, repeated(1), *(repeated(1, mode) for mode in faults), repeated(2))
    found = dict(zip(faults, rows[1:-1], strict=True))
    assert {mode: row.verdict for mode, row in found.items()} == faults
    for row in found.values():
        assert row.finding is not None
        # What failed has no time that could be mistaken for a result.
        assert (row.candidate_us, row.speedup, row.samples, row.rungs) == (None, None, 0, 0)
    assert found["wrong when timed"].finding.code == "time_checked_output_wrong"  # pyright: ignore[reportOptionalMemberAccess]
    assert found["dies"].finding.code == "crashed"  # pyright: ignore[reportOptionalMemberAccess]
    for row in (rows[0], rows[-1]):
        assert row.verdict is None
        assert row.samples >= LEAST_ROUNDS


def test_nothing_to_choose_from_is_timed_once(evaluator: Evaluator, tmp_path: Path):
    (row,) = swept(evaluator, tmp_path, repeated(1))
    assert (row.verdict, row.rungs, row.samples) == (None, 1, FIRST_ROUNDS)
    assert evaluator.sweep([]) == []


def test_what_passes_a_sweep_may_still_fail_the_full_check(evaluator: Evaluator, tmp_path: Path):
    source = repeated(1, "remembers weights")
    (row,) = swept(evaluator, tmp_path, source)
    assert row.verdict is None
    checked = evaluator.check(source, evaluator.build(source, tmp_path))
    assert checked.verdict is Verdict.WRONG_RESULT
    assert checked.findings[0].code == "stale_weights"


def test_the_judge_goes_on_after_a_sweep_as_before_it(evaluator: Evaluator, tmp_path: Path):
    source = repeated(1)
    swept(evaluator, tmp_path, repeated(1, "dies"), repeated(1, "remembers weights"))
    assert evaluator.check(source, evaluator.build(source, tmp_path)).verdict is Verdict.CORRECT
