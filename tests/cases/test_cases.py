"""Every case gets the verdict that its manifest says: a test each, with one judge for the cases of a problem."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cases.judging import HERE, Case, CaseEvaluator, judge, load_cases, open_evaluator, problem_of
from tools.evaluator import Evaluator

Open = Callable[[Case], Evaluator]


def rows(device: str) -> list[object]:
    """Cases as parameters, by problem, so that a problem's evaluator is opened once; with xdist all on one worker."""
    return [
        pytest.param(case, id=case.name, marks=pytest.mark.xdist_group(f"case-{case.problem}"))
        for case in load_cases(HERE, device)
    ]


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Open]:
    """The evaluator, turned to a case's problem. Builds are kept between runs, as a user's are."""
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    builds = cache.mkdir("agent-builds")
    opened: dict[str, CaseEvaluator] = {}

    def find(case: Case) -> Evaluator:
        found = opened.setdefault(case.device, open_evaluator(HERE, case, builds))
        found.turn_to(problem_of(HERE, case))
        return found

    yield find
    for each in opened.values():
        each.close()


TIMINGS = 3
"""A trick that gains nothing may seem to, once, beside other tests; one that gains something does each time."""


def check(case: Case, evaluator: Open, folder: Path) -> None:
    judged = judge(evaluator(case), HERE, case, folder / "0")
    for i in range(1, TIMINGS):
        if judged.right or judged.verdict not in case.accepted:
            break
        judged = judge(evaluator(case), HERE, case, folder / str(i))
    found = "\n".join(f"{f.code}: {f.summary}" for f in judged.findings)
    assert judged.verdict in case.accepted, f"{case.mechanism}\n{found}"
    assert judged.right, f"{case.mechanism}: a speed-up of {judged.speedup} is reported"


@pytest.mark.parametrize("case", rows("cpu"))
def test_verdict(case: Case, evaluator: Open, tmp_path: Path):
    check(case, evaluator, tmp_path)


@pytest.mark.gpu
@pytest.mark.parametrize("case", rows("cuda"))
def test_verdict_on_a_gpu(case: Case, evaluator: Open, tmp_path: Path):
    check(case, evaluator, tmp_path)
