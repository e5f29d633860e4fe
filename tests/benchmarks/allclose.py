"""What a plain allclose harness says of the judged cases: `python -m tests.benchmarks.allclose [DIR] [--device cuda]`.

Does what KernelBench does (tests/benchmarks/plain_harness.py), a fresh process for each candidate, ended after a time
limit, with twenty timed calls. Only building is ours: the libraries are those that
the judge uses too. Prints a markdown table of kinds, or with --json a row for each case; the last line is the count.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tests.benchmarks.plain_harness import judged
from tests.cases.judging import HERE, Case, CaseEvaluator, find_file, judge, load_cases, open_evaluator, problem_of
from tools.types import BuildResult
from tools.worker.loader import BuiltLibraries, run_module

TIMED = 20
SECONDS = 60.0


@dataclass
class Row:
    """One case: what is true of it, what the judge says, and what the plain harness says (`accepts`, `rejects`)."""

    name: str
    kind: str
    mechanism: str
    expected: str
    verdict: str
    plain: str
    speedup: float | None = None
    why: str = ""


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.allclose", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="a folder with a manifest.json")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="", help="only cases whose file or mechanism holds this text")
    parser.add_argument("--no-judge", action="store_true", help="leave the judge out; its column says what is expected")
    parser.add_argument("--json", action="store_true", help="a row for each case instead of the table")
    given = parser.parse_args()
    cases = [c for c in load_cases(given.folder, given.device) if given.only in c.file or given.only in c.mechanism]
    rows: list[Row] = []
    for row in measured(given.folder, cases, judged=not given.no_judge):
        rows.append(row)
        if given.json:
            print(json.dumps(asdict(row)), flush=True)
        else:
            print(f"{row.name}: {row.verdict}, plain {row.plain} {row.why}", file=sys.stderr, flush=True)
    if not given.json:
        print(table(rows))
    print(count(rows, judged=not given.no_judge))
    return 0 if rows else 1


def measured(folder: Path, cases: list[Case], *, judged: bool) -> Iterator[Row]:
    """Each case under both. Builds are shared, so a case that does not build is rejected by both."""
    if not cases:
        return
    with open_evaluator(folder, cases[0]) as evaluator, tempfile.TemporaryDirectory() as logs:
        for i, case in enumerate(cases):
            evaluator.turn_to(problem_of(folder, case))
            yield _row(folder, case, evaluator, Path(logs) / str(i), judged=judged)


def _row(folder: Path, case: Case, evaluator: CaseEvaluator, log_dir: Path, *, judged: bool) -> Row:
    source = find_file(folder, case.file, "candidates").read_text()
    build = evaluator.build(source, log_dir)
    verdict = judge(evaluator, folder, case, log_dir).verdict if judged else case.expected
    row = Row(case.name, case.kind, case.mechanism, "/".join(sorted(case.accepted)), verdict, "rejects")
    if build.verdict is not None:
        row.why = build.verdict.value
        return row
    found = plain(evaluator.spec.source, source, build, case.device)
    row.plain, row.speedup, row.why = ("accepts" if found["passed"] else "rejects"), found["speedup"], found["why"]
    return row


def plain(problem: str, candidate: str, build: BuildResult, device: str) -> dict[str, Any]:
    """The harness's answer on one candidate, from a process of its own: `passed`, `speedup` or None, and `why` not."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    modules = [{"name": m.name, "library": m.library, "call": m.call} for m in build.modules]
    process = context.Process(target=_harness, args=(theirs, problem, candidate, modules, device), daemon=False)
    process.start()
    theirs.close()
    try:
        if not ours.poll(SECONDS):
            return {"passed": False, "speedup": None, "why": f"no answer within {SECONDS:.0f} s"}
        return json.loads(ours.recv_bytes(1 << 20))
    except EOFError:
        process.join(5)
        return {"passed": False, "speedup": None, "why": f"the process left with {process.exitcode}"}
    finally:
        process.kill()
        process.join()


def _harness(pipe: Connection, problem: str, candidate: str, modules: list[dict[str, str]], device: str) -> None:
    """In the candidate's process. What it says is believed, as such harnesses do: that is what is measured."""
    answer: dict[str, Any] = {"passed": False, "speedup": None, "why": ""}
    try:
        libraries = BuiltLibraries(modules)
        reference = run_module(problem, BuiltLibraries([]), "reference")
        libraries.install()
        offered = run_module(candidate, libraries)
        answer.update(judged(vars(reference), vars(offered), device, timed=TIMED))
    except BaseException as error:
        answer["why"] = f"{type(error).__name__}: {str(error)[:200]}"
    pipe.send_bytes(json.dumps(answer).encode())


def table(rows: list[Row]) -> str:
    """The rows as markdown, honest ones first."""
    lines = ["| kind | what it does | verdict | plain allclose | its speed-up |", "|---|---|---|---|---|"]
    order = {"honest": 0, "broken": 1, "hack": 2}
    for row in sorted(rows, key=lambda r: (order.get(r.kind, 3), r.verdict, r.mechanism)):
        wrong = (row.plain == "accepts") != (row.expected == "correct")
        said = f"**{row.plain}**" if wrong else row.plain
        speed = f"{row.speedup:.2f}" if row.speedup is not None else ""
        lines.append(f"| {row.kind} | {row.mechanism} | `{row.verdict}` | {said} | {speed} |")
    return "\n".join(lines)


def count(rows: list[Row], *, judged: bool = True) -> str:
    """How often each was right."""
    parts: list[str] = []
    for kind in ("honest", "broken", "hack"):
        group = [r for r in rows if r.kind == kind]
        if group:
            judge_right = sum(r.verdict in r.expected.split("/") for r in group)
            accepted = sum(r.plain == "accepts" for r in group)
            ours = f"judge right on {judge_right} of {len(group)}, " if judged else ""
            parts.append(f"{kind}: {ours}plain allclose accepts {accepted} of {len(group)}")
    return "; ".join(parts)


if __name__ == "__main__":
    sys.exit(main())
