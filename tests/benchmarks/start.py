"""How long `agent --help` takes from the shell, median of 15 starts.

python tests/benchmarks/start.py
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

STARTS = 15
LIMIT = 0.3


def main() -> None:
    command = [sys.executable, "-m", "agent", "--help"]
    seconds: list[float] = []
    for _ in range(STARTS):
        began = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        seconds.append(time.perf_counter() - began)
    print(f"{STARTS} starts: {min(seconds):.3f} to {max(seconds):.3f} s")
    print(f"agent --help: {statistics.median(seconds):.3f} s (limit {LIMIT:g} s)")


if __name__ == "__main__":
    main()
