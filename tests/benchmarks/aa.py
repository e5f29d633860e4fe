"""A/A test of the timing: the reference against itself, as if it were a candidate. No difference may be claimed.

    python -m tests.benchmarks.aa [--device cpu] [--problem row_softmax] [--comparisons 200] [--results FILE]

Each comparison is a whole timing of its own, with a process of its own for the "candidate". Prints every claim that was
made, and last the share of comparisons that claimed a difference (there is none).
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics as plain_statistics
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from problems import load_problem
from tools.build.helpers import helper_libraries
from tools.device.environment import evidence
from tools.evaluator import default_cache_dir
from tools.judge.court import Court
from tools.judge.session import Program
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import SpeedClaim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--problem", default="row_softmax")
    parser.add_argument("--comparisons", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=float("inf"), help="start no comparison after so many seconds")
    parser.add_argument("--results", type=Path, help="keep what was measured in this file, as JSON")
    options = parser.parse_args()
    cache = default_cache_dir()
    libraries = helper_libraries(cache, options.device)
    source = load_problem(options.problem).source
    size = "small" if options.device == "cpu" else "full"
    with Nursery.start(probe_level(), preload=libraries.guard) as nursery:
        settings = {
            "device": options.device,
            "cache_dir": str(cache),
            "helper": str(libraries.cuda_helper) if libraries.cuda_helper else None,
            "passes": str(libraries.passes) if libraries.passes else None,
            "rule": "oracle",
            "compile_baselines": False,
            "source": source,
            "size": size,
        }
        court = Court(nursery, settings)
        rows = compare(court, source, options.comparisons, options.seconds)
        machine = evidence(options.device, sandbox=nursery.level, compiler=None).model_dump(mode="json")
        court.close()
    claims = sum(row["claim"] != SpeedClaim.INDISTINGUISHABLE for row in rows)
    if options.results:
        machine |= {"host": platform.machine(), "cores": os.cpu_count()}
        machine["date"] = datetime.now(UTC).isoformat(timespec="seconds")
        kept = {"machine": machine, "problem": options.problem, "size": size, "claims": claims, "rows": rows}
        options.results.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(f"{claims} of {len(rows)} comparisons claim a difference: {claims / len(rows):.1%}")


def compare(court: Court, source: str, comparisons: int, seconds: float) -> list[dict[str, Any]]:
    """A row for each timing of the reference against itself: ratio with its interval, null spread, claim."""
    program = Program(source, [], class_name="Model", overrides=court.bench.problem.overrides)
    rows: list[dict[str, Any]] = []
    began = time.monotonic()
    while len(rows) < comparisons and (not rows or time.monotonic() - began < seconds):
        measured = court.duel(program)
        court.crew.refill()
        speedup = measured.speedup
        row = {
            "ratio": [round(x, 5) for x in (speedup.value, speedup.low, speedup.high)],
            "null": round(measured.null, 5),
            "claim": measured.claim.value,
            "samples": len(measured.rounds),
            "clock": measured.rounds.clock,
        }
        if measured.claim is not SpeedClaim.INDISTINGUISHABLE or measured.mismatch is not None:
            print(f"comparison {len(rows)}: {row} {measured.mismatch.summary if measured.mismatch else ''}", flush=True)
        rows.append(row)
    ratios = [row["ratio"][0] for row in rows]
    print(
        f"ratios: median {plain_statistics.median(ratios):.4f}, spread {min(ratios):.4f} to {max(ratios):.4f}; "
        f"{(time.monotonic() - began) / len(rows):.2f} s a comparison"
    )
    return rows


if __name__ == "__main__":
    main()
