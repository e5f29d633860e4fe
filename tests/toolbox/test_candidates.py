import json
from pathlib import Path

import pytest

from tools.candidates import Candidates, clean_source
from tools.types import (
    BuildResult,
    CorrectnessResult,
    ErrorStats,
    Evidence,
    Interval,
    SandboxLevel,
    SpeedClaim,
    TimingResult,
    TrialResult,
    Verdict,
)

EVIDENCE = Evidence(
    device="cpu", device_name="a processor", torch_version="2", sandbox=SandboxLevel.LIMITS, date="2026-01-01"
)
BUILT = BuildResult(ok=True, source_key="s", seconds=1.0)


def checked(verdict: Verdict, **more: object) -> CorrectnessResult:
    return CorrectnessResult(verdict=verdict, seconds=1.0, evidence=EVIDENCE, **more)  # pyright: ignore[reportArgumentType]


def timed(speedup: float, candidate_us: float = 10.0) -> TimingResult:
    def around(value: float) -> Interval:
        return Interval(value=value, low=value * 0.99, high=value * 1.01)

    return TimingResult(
        candidate_us=around(candidate_us),
        reference_us=around(candidate_us * speedup),
        speedup=around(speedup),
        claim=SpeedClaim.FASTER,
        null_spread=0.01,
        samples=10,
        method="m",
        seconds=1.0,
        evidence=EVIDENCE,
    )


@pytest.fixture
def candidates(tmp_path: Path) -> Candidates:
    return Candidates(tmp_path / "kernels")


def test_ids_count_up_and_the_same_source_keeps_its_id(candidates: Candidates):
    assert [candidates.add(text)[0].id for text in ("a\n", "b\n", "a\n")] == ["k1", "k2", "k1"]
    assert candidates.add("a\n")[1] is False


def test_everything_is_found_again_by_another_process(candidates: Candidates, tmp_path: Path):
    candidates.add("a\n")
    candidates.add("b\n", edited_from="k1")
    candidates.update("k2", build=BUILT, correctness=checked(Verdict.CORRECT), timing=timed(1.5))
    again = Candidates(tmp_path / "kernels")
    assert [(c.source, c.state) for c in again] == [(c.source, c.state) for c in candidates]
    assert again.add("c\n")[0].id == "k3"


def test_a_candidate_whose_process_died_before_its_state_was_written_is_kept(candidates: Candidates, tmp_path: Path):
    folder = candidates.add("a\n")[0].folder
    (folder / "state.json").unlink()
    again = Candidates(tmp_path / "kernels")
    assert again.ids == ["k1"]
    assert again.add("a\n")[1] is False


def test_ids_go_on_in_numeric_order_past_a_thousand(tmp_path: Path):
    for number in (2, 999, 1000):
        folder = tmp_path / f"k{number:03d}"
        folder.mkdir()
        (folder / "source.py").write_text(f"{number}\n")
    assert Candidates(tmp_path).add("new\n")[0].id == "k1001"


def test_infinite_errors_survive_the_disk(candidates: Candidates, tmp_path: Path):
    candidates.add("a\n")
    error = ErrorStats(maximum=float("inf"), rms=float("inf"), bias=float("-inf"), scale=1.0)
    trial = TrialResult(kind="own", passed=False, error=error)
    candidates.update("k1", build=BUILT, correctness=checked(Verdict.WRONG_RESULT, trials=[trial]))
    again = Candidates(tmp_path / "kernels").get("k1")
    assert again is not None
    assert again.state.correctness is not None
    assert again.state.correctness.trials[0].error == error


def test_the_ranking_is_by_speedup_and_leaves_out_what_was_not_confirmed(candidates: Candidates):
    for source, speedup in (("a\n", 1.2), ("b\n", 3.0), ("c\n", 2.0)):
        name = candidates.add(source)[0].id
        candidates.update(name, build=BUILT, correctness=checked(Verdict.CORRECT), timing=timed(speedup))
    assert [c.id for c in candidates.ranking()] == ["k2", "k3", "k1"]
    candidates.update("k2", confirmed=False)
    assert candidates.best is not None
    assert candidates.best.id == "k3"


def test_the_ranking_goes_by_the_paired_ratio_and_not_by_absolute_time(candidates: Candidates):
    for source, speedup, time in (("a\n", 2.0, 12.0), ("b\n", 1.5, 10.0)):
        name = candidates.add(source)[0].id
        candidates.update(name, build=BUILT, correctness=checked(Verdict.CORRECT), timing=timed(speedup, time))
    assert [c.id for c in candidates.ranking()] == ["k1", "k2"]


def test_only_correct_candidates_rank(candidates: Candidates):
    candidates.add("a\n")
    candidates.update("k1", build=BUILT, correctness=checked(Verdict.WRONG_RESULT))
    assert candidates.best is None


def test_unjudged_are_those_that_compiled_and_lack_a_verdict_or_a_time(candidates: Candidates):
    for source in (
        "never built\n",
        "built\n",
        "wrong\n",
        "correct, not timed\n",
        "done\n",
        "judge failed\n",
        "no build\n",
    ):
        candidates.add(source)
    failed = BuildResult(ok=False, verdict=Verdict.COMPILE_ERROR, source_key="s", seconds=1.0)
    candidates.update("k2", build=BUILT)
    candidates.update("k3", build=BUILT, correctness=checked(Verdict.WRONG_RESULT))
    candidates.update("k4", build=BUILT, correctness=checked(Verdict.CORRECT))
    candidates.update("k5", build=BUILT, correctness=checked(Verdict.CORRECT), timing=timed(1.0))
    candidates.update("k6", build=BUILT, correctness=checked(Verdict.JUDGE_ERROR))
    candidates.update("k7", build=failed)
    assert [c.id for c in candidates.unjudged()] == ["k6", "k4", "k2"]


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("x = 1", "x = 1\n"),
        ("```python\nx = 1\n```", "x = 1\n"),
        ("```\nx = 1\n```\n", "x = 1\n"),
        ("  \n\n", ""),
        ("```python\n```", ""),
        ("x = '```'\ny = '```'\n", "x = '```'\ny = '```'\n"),
        ("\nx = 1\n\n", "\nx = 1\n"),
    ],
)
def test_one_enclosing_fence_is_taken_off_and_nothing_else(text: str, clean: str):
    assert clean_source(text) == clean


def test_state_on_disk_is_plain_json(candidates: Candidates):
    folder = candidates.add("a\n")[0].folder
    assert json.loads((folder / "state.json").read_text())["id"] == "k1"
