"""What other programs take of the machine while something is timed is seen, and told beside the time."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cases.judging import HERE, load_cases, open_evaluator
from tools.evaluator import Evaluator
from tools.judge import threads
from tools.judge.machine import Bystanders, busy_us
from tools.types import TimingResult

STAT = """cpu  90 0 90 900 0 0 0 0 0 0
cpu0 10 1 5 500 70 2 3 4 9 9
cpu1 20 0 0 400 0 0 0 0 0 0
cpu11 40 0 0 400 0 0 0 0 0 0
intr 12345
"""
CASE = next(case for case in load_cases(HERE, "cpu") if case.name == "silu_openmp")
SPIN = "while True:\n    pass"


@pytest.fixture
def spinning() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", SPIN]) as program:
        yield program
        program.kill()


def test_only_what_processors_of_ours_have_done_counts(tmp_path: Path):
    (tmp_path / "stat").write_text(STAT)
    tick = 1e6 / os.sysconf("SC_CLK_TCK")
    assert busy_us(tmp_path / "stat", {0, 1}) == (25 + 20) * tick
    assert busy_us(tmp_path / "stat", {11}) == 40 * tick
    assert busy_us(Path("/proc/stat"), os.sched_getaffinity(0)) > 0


@pytest.mark.parametrize("text", [None, "", "cpu0\n", "cpu0 one 2 3 4 5 6 7 8\n"])
def test_where_the_kernel_does_not_tell_nobody_is_there(tmp_path: Path, text: str | None):
    if text is not None:
        (tmp_path / "stat").write_text(text)
    assert busy_us(tmp_path / "stat", {0}) == 0.0


def test_another_program_is_seen_unless_it_is_ours(spinning: subprocess.Popen[bytes]):
    others, none = Bystanders([]), Bystanders([spinning.pid])
    began = threads.process_time(spinning.pid)
    while threads.process_time(spinning.pid) < began + 500_000:
        time.sleep(0.02)
    without = none.share()
    assert without < others.share() <= 1.0


@pytest.fixture
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    with open_evaluator(HERE, CASE, cache.mkdir("agent-builds")) as evaluator:
        yield evaluator


def test_a_time_taken_beside_other_programs_says_so(evaluator: Evaluator, tmp_path: Path):
    source = (HERE / CASE.file).read_text()
    build = evaluator.build(source, tmp_path)
    evaluator.soundness()  # all that can be done before is
    with subprocess.Popen([sys.executable, "-c", SPIN]) as program:
        try:
            timing = evaluator.time(source, build)
        finally:
            program.kill()
    assert isinstance(timing, TimingResult)
    (told,) = [f for f in timing.findings if f.code == "busy_machine"]
    assert told.severity == "warning"
    assert 0.1 < told.observed["share"] <= 1.0
