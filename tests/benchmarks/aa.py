"""A/A test of the timing: the reference against itself, as if it were a candidate. No difference may be claimed.

    python -m tests.benchmarks.aa [--device cpu] [--problem row_softmax] [--comparisons 200]

Each comparison is a whole timing of its own, with a process of its own for the "candidate". Prints every claim that was
made, and last the share of comparisons that claimed a difference (there is none).
"""

from __future__ import annotations

import argparse
import statistics as plain_statistics

from problems import load_problem
from tools.build.helpers import helper_libraries
from tools.evaluator import default_cache_dir
from tools.judge.court import Court
from tools.judge.session import Program
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import SpeedClaim


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--problem", default="row_softmax")
    parser.add_argument("--comparisons", type=int, default=200)
    options = parser.parse_args()
    cache = default_cache_dir()
    libraries = helper_libraries(cache, options.device)
    source = load_problem(options.problem).source
    with Nursery.start(probe_level(), preload=libraries.guard) as nursery:
        settings = {
            "device": options.device,
            "cache_dir": str(cache),
            "helper": str(libraries.cuda_helper) if libraries.cuda_helper else None,
            "rule": "oracle",
            "compile_baselines": False,
            "source": source,
            "size": "small" if options.device == "cpu" else "full",
        }
        court = Court(nursery, settings)
        claims = compare(court, source, options.comparisons)
        court.close()
    print(f"{claims} of {options.comparisons} comparisons claim a difference: {claims / options.comparisons:.1%}")


def compare(court: Court, source: str, comparisons: int) -> int:
    """How many of `comparisons` timings of the reference against itself claim a difference."""
    program = Program(source, [], class_name="Model", overrides=court.bench.problem.overrides)
    claims = 0
    ratios: list[float] = []
    for number in range(comparisons):
        measured = court.duel(program)
        speedup = measured.speedup
        ratios.append(speedup.value)
        if measured.claim is not SpeedClaim.INDISTINGUISHABLE:
            claims += 1
            print(
                f"comparison {number}: {speedup.value:.4f} ({speedup.low:.4f} to {speedup.high:.4f}), "
                f"null {measured.null:.4f}",
                flush=True,
            )
    if len(ratios) > 1:
        print(f"ratios: median {plain_statistics.median(ratios):.4f}, spread {min(ratios):.4f} to {max(ratios):.4f}")
    return claims


if __name__ == "__main__":
    main()
