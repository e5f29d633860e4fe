"""From a candidate's text to its full verdict with timing, beside a plain in-process harness that does what KernelBench
does: stock load_inline, inputs drawn on the CPU, five trials, 100 timed calls.

    python -m tests.benchmarks.verdict [--device cpu|cuda] [--only TEXT] [--results FILE]

Both start from an empty folder of builds, and both are given the same file. Ours is a judge as it is in a run: started
for the problem, its reference timed, and what is built once an installation built. How long that took is told apart,
and so is the ratio with it. Prints a row a problem, and last the least ratio.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import Verdict

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "transcripts" / "examples"
CANDIDATES = {
    "cuda": {
        "pointwise_conv": EXAMPLES / "pointwise_conv_h200/kernels/k003/source.py",
        "conv_mish_mish": EXAMPLES / "conv_mish_mish_h200/kernels/k002/source.py",
    },
    "cpu": {"rms_norm_residual": EXAMPLES / "rms_norm_residual_cpu/kernels/k004/source.py"},
}
HARNESS_SECONDS = 900.0
_HEAD = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
_CLASS = "\nclass ModelNew(torch.nn.Module):\n    pass\n"
FIRST = {
    "cpu": _HEAD + "load_inline('first', 'torch::Tensor f(torch::Tensor x) { return x; }', functions=['f'])" + _CLASS,
    "cuda": _HEAD
    + "load_inline('first', '', 'torch::Tensor f(torch::Tensor x) { return x; }', functions=['f'])"
    + _CLASS,
}
"""Sources that have nothing but the route to be built for."""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--only", default="", help="only problems whose name holds this text")
    parser.add_argument("--results", type=Path, help="keep what was measured in this file, as JSON")
    given = parser.parse_args()
    size = "full" if given.device == "cuda" else "small"
    rows: list[dict[str, Any]] = []
    machine: dict[str, Any] = {}
    chosen = {name: path for name, path in CANDIDATES[given.device].items() if given.only in name}
    for name, candidate in chosen.items():
        ours, machine = judged(name, candidate, given.device, size)
        plain = harnessed(name, candidate, given.device, size)
        ratio = plain["wall_seconds"] / ours["seconds"]
        rows.append({"problem": name, "ours": ours, "plain": plain, "ratio": ratio})
        print(
            f"{name}: ours {ours['seconds']:.1f} s ({ours['verdict']}, {ours['speedup']:.3f}x; build "
            f"{ours['build_seconds']:.1f} s, start {ours['start_seconds']:.1f} s before), plain harness "
            f"{plain['wall_seconds']:.1f} s ({_said(plain)}; build {plain.get('build_seconds', 0.0):.1f} s): "
            f"{ratio:.1f} times faster, {plain['wall_seconds'] / (ours['seconds'] + ours['start_seconds']):.1f} with "
            "the start",
            flush=True,
        )
    if given.results:
        machine["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        given.results.write_text(json.dumps({"machine": machine, "rows": rows}, indent=1) + "\n", encoding="utf-8")
    print(f"least ratio: {min(row['ratio'] for row in rows):.1f}")
    return 0


def judged(name: str, candidate: Path, device: str, size: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Our verdict on a candidate, and the machine it is of. Times in seconds."""
    with tempfile.TemporaryDirectory() as folder:
        settings = EvaluatorSettings.model_validate({"device": device, "size": size, "cache_dir": Path(folder)})
        began = time.monotonic()
        with Evaluator(load_problem(name), settings) as evaluator:
            facts = evaluator.facts()
            if not evaluator.build(FIRST[device], Path(folder) / "first").ok:
                raise SystemExit("the first build of all fails")
            start = time.monotonic() - began
            began = time.monotonic()
            result = evaluator.evaluate(candidate.read_text(encoding="utf-8"), Path(folder) / "log")
            seconds = time.monotonic() - began
    if result.verdict is not Verdict.CORRECT or result.timing is None or result.correctness is None:
        raise SystemExit(f"{candidate} is {result.verdict}")
    machine = {**facts.evidence.model_dump(mode="json"), "host": platform.machine(), "cores": os.cpu_count()}
    return {
        "verdict": result.verdict.value,
        "seconds": seconds,
        "start_seconds": start,
        "build_seconds": result.build.seconds,
        "check_seconds": result.correctness.seconds,
        "time_seconds": result.timing.seconds,
        "speedup": result.timing.speedup.value,
    }, machine


def harnessed(name: str, candidate: Path, device: str, size: str) -> dict[str, Any]:
    """What the plain harness says, in a process of its own, and the wall time with its start in `wall_seconds`."""
    with tempfile.TemporaryDirectory() as folder:
        problem = Path(folder) / "problem.py"
        problem.write_text(load_problem(name).source, encoding="utf-8")
        command = [sys.executable, "-m", "tests.benchmarks.plain_harness", str(problem), str(candidate)]
        environment = {**os.environ, "TORCH_EXTENSIONS_DIR": str(Path(folder) / "extensions")}
        began = time.monotonic()
        done = subprocess.run(
            [*command, "--device", device, "--size", size],
            capture_output=True,
            text=True,
            cwd=ROOT,
            env=environment,
            timeout=HARNESS_SECONDS,
        )
        wall = time.monotonic() - began
    if done.returncode != 0:
        return {"passed": False, "why": done.stderr.strip().splitlines()[-1][:300], "wall_seconds": wall}
    return {**json.loads(done.stdout.strip().splitlines()[-1]), "wall_seconds": wall}


def _said(plain: dict[str, Any]) -> str:
    return f"accepts, {plain['speedup']:.3f}x" if plain["passed"] else f"rejects: {plain['why']}"


if __name__ == "__main__":
    sys.exit(main())
