"""What a plain allclose harness says of the judged cases: `python -m tests.benchmarks.allclose [DIR] [--device cuda]`.

Does what KernelBench does, in code of our own: candidate and reference in one process (a fresh one for each candidate,
ended after a time limit), known seeds, inputs drawn on the CPU, five trials of torch.allclose at 1e-4 against the
reference as it runs, then twenty timed calls one after the other. Only building is ours: the libraries are those that
the judge uses too. Prints a markdown table of kinds, or with --json a row for each case; the last line is the count.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import torch

from tests.cases.judging import HERE, Case, CaseEvaluator, find_file, judge, load_cases, open_evaluator, problem_of
from tools.types import BuildResult
from tools.worker.loader import BuiltLibraries, run_module

SEED = 42
TRIALS = 5
TOLERANCE = 1e-4
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
        answer.update(_judge(vars(reference), vars(offered), device))
    except BaseException as error:
        answer["why"] = f"{type(error).__name__}: {str(error)[:200]}"
    pipe.send_bytes(json.dumps(answer).encode())


def _judge(reference: dict[str, Any], offered: dict[str, Any], device: str) -> dict[str, Any]:
    models: list[torch.nn.Module] = []
    for namespace, name in ((reference, "Model"), (offered, "ModelNew")):
        _set_seed(SEED, device)
        init = reference["get_init_inputs"]() if "get_init_inputs" in reference else []
        _set_seed(SEED, device)
        models.append(namespace[name](*[_moved(x, device) for x in init]).to(device))
    model, custom = models
    _set_seed(SEED, device)
    seeds = torch.randint(0, 2**32 - 1, (TRIALS,)).tolist()
    with torch.no_grad():
        for number, seed in enumerate(seeds):
            _set_seed(seed, device)
            inputs = [_moved(x, device) for x in reference["get_inputs"]()]
            _set_seed(seed, device)
            expected = model(*inputs)
            _synchronize(device)
            _set_seed(seed, device)
            got = custom(*inputs)
            _synchronize(device)
            why = _differs(got, expected)
            if why:
                return {"passed": False, "why": f"trial {number + 1}: {why}"}
        _set_seed(SEED, device)
        inputs = [_moved(x, device) for x in reference["get_inputs"]()]
        theirs, ours = (_timed(m, inputs, device) for m in (custom, model))
    return {"passed": True, "speedup": ours / theirs}


def _differs(got: Any, expected: Any) -> str:
    """Why an output is no match; the plain rule knows tensors, and here sequences and dicts of them too."""
    if isinstance(expected, dict):
        same = isinstance(got, dict) and got.keys() == expected.keys()
        return next(filter(None, (_differs(got[k], expected[k]) for k in expected)), "") if same else "structure"
    if isinstance(expected, list | tuple):
        same = isinstance(got, list | tuple) and len(got) == len(expected)
        return next(filter(None, map(_differs, got, expected)), "") if same else "structure"
    if not isinstance(expected, torch.Tensor):
        return "" if got == expected else "value"
    if got.shape != expected.shape:
        return f"shape {tuple(got.shape)} for {tuple(expected.shape)}"
    if torch.allclose(expected, got, atol=TOLERANCE, rtol=TOLERANCE):
        return ""
    return f"differs by up to {float((got.double() - expected.double()).abs().max()):.3g}"


def _timed(model: torch.nn.Module, inputs: list[Any], device: str) -> float:
    """Mean seconds of a call."""
    for _ in range(3):
        model(*inputs)
    _synchronize(device)
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        total = 0.0
        for _ in range(TIMED):
            start.record()
            model(*inputs)
            end.record()
            torch.cuda.synchronize()
            total += start.elapsed_time(end) / 1e3
        return total / TIMED
    began = time.perf_counter()
    for _ in range(TIMED):
        model(*inputs)
    return (time.perf_counter() - began) / TIMED


def _set_seed(seed: int, device: str) -> None:
    torch.manual_seed(seed)
    if device == "cuda":
        torch.cuda.manual_seed(seed)


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


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
