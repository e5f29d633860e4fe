"""How long `tune_kernel` takes for 16 variants of a pointwise convolution, from the call to a winner that was checked.

The source as it is has been judged before the clock starts, as in a run; nothing of the variants is cached. The small
size on the CPU and the full one (12.9 GB a call) on a GPU.

    python tests/benchmarks/tune.py [--device cpu|cuda]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from problems import load_problem
from prompts import render
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.reports import KernelReport, TuneReport
from tools.toolbox import Toolbox

SOURCES = Path(__file__).with_name("tuned")
SPACES = {
    "cpu": {"CHANNELS": [2, 4, 8, 16], "PIXELS": [8, 16, 32, 64]},
    "cuda": {"THREADS": [64, 128, 256, 512], "CHANNELS": [16, 32], "PIXELS": [1, 2]},
}
LIMIT = 60.0


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    device = parser.parse_args().device
    source = (SOURCES / f"pointwise_{device}.py").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        settings = EvaluatorSettings(
            device=device, size="small" if device == "cpu" else "full", cache_dir=folder / "cache"
        )
        with Evaluator(load_problem("pointwise_conv"), settings) as evaluator:
            device_name = evaluator.facts().device.name
            toolbox = Toolbox(evaluator, folder / "kernels")
            first = toolbox.call("evaluate_kernel", json.dumps({"source": source}))
            if not isinstance(first, KernelReport) or first.timing is None:
                raise SystemExit(render(first.kind, report=first))
            began = time.monotonic()
            report = toolbox.call("tune_kernel", json.dumps({"id": first.kernel, "space": SPACES[device]}))
            seconds = time.monotonic() - began
    print(render(report.kind, report=report))
    if not isinstance(report, TuneReport) or report.best is None:
        why = report.judge_failure if isinstance(report, TuneReport) else None
        raise SystemExit(why or "no variant was found to be correct")
    rest = seconds - report.build_seconds - report.sweep_seconds
    print(
        f"16 variants on {device_name}: {seconds:.1f} s (limit on an H200 {LIMIT:g} s): "
        f"builds {report.build_seconds:.1f} s, sweep {report.sweep_seconds:.1f} s, full check and timing {rest:.1f} s"
    )


if __name__ == "__main__":
    main()
