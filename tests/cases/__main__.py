"""`python -m tests.cases [DIR] [--device cpu|cuda] [--only TEXT]`: judge every case of a folder's manifest.

Prints a row per case and a count; exits with 1 when a verdict is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.cases.judging import HERE, Judged, judge_all, load_cases


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.cases", description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path, default=HERE, help="a folder with a manifest.json")
    parser.add_argument("--device", choices=["cpu", "cuda"], help="only the cases of this device")
    parser.add_argument("--only", default="", help="only cases whose file or mechanism holds this text")
    parser.add_argument("--wrong", action="store_true", help="print only the wrong ones")
    given = parser.parse_args()
    cases = [c for c in load_cases(given.folder, given.device) if given.only in c.file or given.only in c.mechanism]
    done: list[Judged] = []
    for judged in judge_all(given.folder, cases):
        done.append(judged)
        if not (given.wrong and judged.right):
            print(line(judged), flush=True)
    wrong = [j for j in done if not j.right]
    accused = [j for j in wrong if j.case.kind == "honest"]
    print(f"{len(done) - len(wrong)} of {len(done)} as expected; {len(accused)} honest ones accused")
    return 1 if wrong or not done else 0


def line(judged: Judged) -> str:
    case = judged.case
    mark = "ok   " if judged.right else "WRONG"
    speed = f"{judged.speedup:8.2f}x" if judged.speedup else " " * 9
    codes = ", ".join(f.code for f in judged.findings)
    text = f"{mark} {case.kind:7} {case.name:34} {judged.verdict:18} {speed} {judged.seconds:5.1f}s  {codes}"
    if judged.right:
        return text
    reasons = "".join(f"\n        {f.code}: {f.summary[:300]}" for f in judged.findings)
    return f"{text}\n        expected {sorted(case.accepted)}: {case.mechanism}{reasons}"


if __name__ == "__main__":
    sys.exit(main())
