"""Builds side by side: the fast route against torch's own `load_inline`, on candidates of different style.

For each file of `tests/build/corpus` the time from its text to a library that can be loaded, by both routes one right
after the other; then the time of a build that is cached, and of a call through either binding. Where torch can't link
CUDA sources (a CPU build of torch), the stock side only compiles them, by the command lines of `load_inline`.

    python tests/benchmarks/builds.py [--device cpu|cuda] [--limit N] [--part I/N] [--jobs N] [--results FILE]

With `--results` what was measured is kept in FILE, and a second run goes on from there. With `--part` N runs, each on
cores of its own (`taskset`), share the candidates.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.build import Builder, ToolchainError, find_toolchain
from tools.build.slots import cores
from tools.nursery import Nursery
from tools.sandbox import probe_level

CORPUS = Path(__file__).parents[1] / "build" / "corpus"
ARCH = "sm_90a"
STOCK_SECONDS = 900.0

# Importing torch is not part of a build: only the file's own import is timed.
PLAIN = """
import sys, time, torch, torch.utils.cpp_extension
begin = time.perf_counter()
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"), {"__name__": "candidate"})
print(time.perf_counter() - begin)
"""

# A binding of each kind of argument that candidates use most, and nothing behind it.
CALLED = """
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="called_by_{route}", cpp_sources='''
#include <torch/extension.h>
torch::Tensor same(torch::Tensor x, int n, float a) { return x; }
''', functions=["same"])
class ModelNew(torch.nn.Module):
    pass
"""

CALLS = """
import importlib.machinery, importlib.util, statistics, sys, time
import torch
def load(path):
    name = path.rsplit("/", 1)[-1].removesuffix(".so")
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module.same
functions = [load(path) for path in sys.argv[1:]]
x, count = torch.ones(4), 20000
times = [[], []]
for _ in range(31):
    for function, kept in zip(functions, times):
        begin = time.perf_counter()
        for _ in range(count):
            function(x, 3, 1.5)
        kept.append((time.perf_counter() - begin) / count * 1e6)
print(*(statistics.median(kept) for kept in times))
"""


class Bench:
    """One run: a builder with an empty cache, and torch's own builds in folders that are as empty."""

    def __init__(self, builder: Builder, folder: Path, *, plain: bool) -> None:
        self.builder = builder
        self.folder = folder
        self.plain = plain

    def candidate(self, path: Path) -> dict[str, Any]:
        """Seconds by both routes for one file."""
        source = path.read_text(encoding="utf-8")
        logs = self.folder / "logs" / path.stem
        begin = time.perf_counter()
        fast = self.builder.build(source, init_args=[], log_dir=logs)
        fast_seconds = time.perf_counter() - begin
        begin = time.perf_counter()
        again = self.builder.build(source, init_args=[], log_dir=logs)
        cached_seconds = time.perf_counter() - begin
        return {
            "file": path.name,
            "headers": "extension.h" if "torch/extension.h" in source else "default",
            "fast": fast_seconds,
            "cached": cached_seconds,
            "stock": self.stock(source, path, logs),
            "routes": sorted({m.route for m in fast.modules}),
            "ok": fast.ok and again.cached,
        }

    def stock(self, source: str, path: Path, logs: Path) -> float | None:
        """Seconds of torch's own build of the file; None where it fails."""
        if not self.plain:
            begin = time.perf_counter()
            built = self.builder.build(source, init_args=[], log_dir=logs, stock=True, timeout=STOCK_SECONDS)
            return time.perf_counter() - begin if built.ok else None
        text = self.folder / f"{path.stem}.py"
        text.write_text(self.builder.standalone(source, init_args=[]), encoding="utf-8")
        environment = {
            **os.environ,
            "TORCH_EXTENSIONS_DIR": str(self.folder / "extensions" / path.stem),
            "TORCH_CUDA_ARCH_LIST": ARCH.removeprefix("sm_").replace("90", "9.0"),
            # ninja stands beside this Python where pip put it.
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        }
        done = subprocess.run(
            [sys.executable, "-c", PLAIN, str(text)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=STOCK_SECONDS,
            check=False,
        )
        if done.returncode != 0:
            print(f"{path.name}: load_inline failed: {done.stderr.strip()[-300:]}", file=sys.stderr)
            return None
        return float(done.stdout.split()[-1])

    def call_overhead(self) -> tuple[float, float]:
        """Microseconds of a call by the fast and by the stock binding."""
        paths: list[str] = []
        for route in ("fast", "stock"):
            source = CALLED.replace("{route}", route)
            built = self.builder.build(source, init_args=[], log_dir=self.folder / "logs", stock=route == "stock")
            assert built.ok, built
            assert built.modules[0].route == route
            paths.append(built.modules[0].library)
        done = subprocess.run([sys.executable, "-c", CALLS, *paths], capture_output=True, text=True, check=True)
        fast, stock = (float(word) for word in done.stdout.split())
        return fast, stock


def table(rows: list[dict[str, Any]]) -> None:
    print(f"\n{'candidate':44} {'headers':12} {'route':6} {'stock s':>8} {'fast s':>7} {'ratio':>6} {'cached s':>9}")
    for row in rows:
        stock = f"{row['stock']:8.1f}" if row["stock"] else "  failed"
        ratio = f"{row['stock'] / row['fast']:6.1f}" if row["stock"] else "     -"
        route = "+".join(row["routes"]) if row["ok"] else "failed"
        name = row["file"].removesuffix(".py")
        print(f"{name:44} {row['headers']:12} {route:6} {stock} {row['fast']:7.2f} {ratio} {row['cached']:9.4f}")


def figures(rows: list[dict[str, Any]]) -> list[str]:
    """The medians, one phrase each."""
    found: list[str] = []
    for headers in ("extension.h", "default"):
        ratios = [r["stock"] / r["fast"] for r in rows if r["headers"] == headers and r["stock"] and r["ok"]]
        if ratios:
            found.append(f"{statistics.median(ratios):.1f}x on {headers} sources (median of {len(ratios)})")
    through = sum(row["routes"] == ["fast"] for row in rows)
    found.append(f"{through} of {len(rows)} by the fast route")
    found.append(f"median {statistics.median(row['fast'] for row in rows):.1f} s to loadable")
    found.append(f"cached {max(row['cached'] for row in rows):.3f} s at most")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", choices=["cpu", "cuda"], help="which candidates; both by default")
    parser.add_argument("--limit", type=int, help="only so many candidates of each device")
    parser.add_argument("--part", default="0/1", help="only each Nth candidate, from the Ith on (counted from 0)")
    parser.add_argument("--jobs", type=int, default=1, help="candidates at a time, on both sides alike")
    parser.add_argument("--results", type=Path, help="keep what was measured here, and go on from it")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    known = _known(options.results)
    rows: list[dict[str, Any]] = []
    overhead: tuple[float, float] | None = None
    level = probe_level()
    with tempfile.TemporaryDirectory(prefix="builds-") as folder, Nursery.start(level) as nursery:
        for device in ("cpu", "cuda"):
            if options.device not in (None, device):
                continue
            files = sorted(CORPUS.glob("cpp_*.py" if device == "cpu" else "cuda_*.py"))[: options.limit]
            files = files[part::parts]
            try:
                toolchain = find_toolchain(cuda=device == "cuda")
            except ToolchainError as error:
                print(f"{device} left out: {error}")
                continue
            cache = Path(folder) / device
            builder = Builder(nursery=nursery, device=device, level=level, cache_dir=cache, arch=ARCH)
            begin = time.perf_counter()
            assert builder.ready(), "the fast route has no kit on this machine"
            compiler = toolchain.describe(cuda=device == "cuda")
            print(f"{device}: {compiler}, torch {toolchain.torch_version}, {cores()} cores")
            print(f"{device}: {time.perf_counter() - begin:.1f} s to prepare the fast route, once per installation")
            bench = Bench(builder, cache, plain=device == "cpu" or toolchain.links_cuda)
            missing = [path for path in files if path.name not in known]
            with ThreadPoolExecutor(options.jobs) as pool:
                for row in pool.map(bench.candidate, missing):
                    known[row["file"]] = row
                    print(
                        f"{row['file']}: stock {row['stock'] or float('nan'):.1f} s, fast {row['fast']:.2f} s",
                        flush=True,
                    )
                    if options.results:
                        options.results.write_text(json.dumps(list(known.values()), indent=1))
            rows += [known[path.name] for path in files]
            if device == "cpu" and part == 0:
                overhead = bench.call_overhead()
    print(f"\n{platform.processor() or platform.machine()}, {datetime.now(UTC):%Y-%m-%d}, sandbox {level.value}")
    table(rows)
    summary = figures(rows)
    if overhead:
        summary.append(f"a call takes {overhead[0]:.2f} us, {overhead[1]:.2f} us by the stock binding")
    print("\n" + "; ".join(summary))


def _known(path: Path | None) -> dict[str, dict[str, Any]]:
    if path is None or not path.exists():
        return {}
    return {row["file"]: row for row in json.loads(path.read_text()) if row["ok"]}


if __name__ == "__main__":
    main()
