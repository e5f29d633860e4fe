"""A plain in-process harness that judges as KernelBench does, in code of our own, to compare with.

Candidate and reference in one process, known seeds, inputs drawn on the CPU, five trials of torch.allclose at 1e-4
against the reference as it runs, then timed calls one after the other, on one input. As there, values that differ end
nothing: all trials are run and those that passed are counted. Another form of output ends them at once.

    python -m tests.benchmarks.plain_harness PROBLEM CANDIDATE [--device cpu|cuda] [--size full|small] [--timed 100]

builds the candidate by torch's own load_inline and prints the answer as JSON.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path
from typing import Any

import torch

SEED = 42
TRIALS = 5
TOLERANCE = 1e-4
VALUES = "differs by up to"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("problem", type=Path)
    parser.add_argument("candidate", type=Path)
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--size", choices=["full", "small"], default="full")
    parser.add_argument("--timed", type=int, default=100)
    given = parser.parse_args()
    reference = _executed(given.problem)
    if given.size == "small":
        reference.update(reference.get("SMALL", {}))
    began = time.monotonic()
    offered = _executed(given.candidate)
    build = time.monotonic() - began
    answer = judged(reference, offered, given.device, timed=given.timed)
    print(json.dumps({**answer, "build_seconds": build, "seconds": time.monotonic() - began}))
    return 0


def _executed(path: Path) -> dict[str, Any]:
    namespace: dict[str, Any] = {"__name__": path.stem}
    exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return namespace


def judged(reference: dict[str, Any], offered: dict[str, Any], device: str, *, timed: int) -> dict[str, Any]:
    """The harness's answer on two namespaces, of a problem and of a candidate: `passed`, and `speedup` or `why` not."""
    models: list[torch.nn.Module] = []
    for namespace, name in ((reference, "Model"), (offered, "ModelNew")):
        _set_seed(SEED, device)
        init = reference["get_init_inputs"]() if "get_init_inputs" in reference else []
        _set_seed(SEED, device)
        models.append(namespace[name](*[_moved(x, device) for x in init]).to(device))
    model, custom = models
    _set_seed(SEED, device)
    seeds = torch.randint(0, 2**32 - 1, (TRIALS,)).tolist()
    passed, why = 0, ""
    with torch.no_grad():
        for seed in seeds:
            _set_seed(seed, device)
            inputs = [_moved(x, device) for x in reference["get_inputs"]()]
            _set_seed(seed, device)
            expected = model(*inputs)
            _synchronize(device)
            _set_seed(seed, device)
            got = custom(*inputs)
            _synchronize(device)
            found = _differs(got, expected)
            if found and not found.startswith(VALUES):
                return {"passed": False, "why": found}
            passed, why = passed + (not found), why or found
        if why:
            return {"passed": False, "why": f"{passed} of {TRIALS} trials pass: {why}"}
        _set_seed(SEED, device)
        inputs = [_moved(x, device) for x in reference["get_inputs"]()]
        theirs, ours = (_timed(m, inputs, device, timed) for m in (custom, model))
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
    return f"{VALUES} {float((got.double() - expected.double()).abs().max()):.3g}"


def _timed(model: torch.nn.Module, inputs: list[Any], device: str, calls: int) -> float:
    """Mean seconds of a call."""
    for _ in range(3):
        model(*inputs)
    _synchronize(device)
    if device == "cuda":
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        total = 0.0
        for _ in range(calls):
            start.record()
            model(*inputs)
            end.record()
            torch.cuda.synchronize()
            total += start.elapsed_time(end) / 1e3
        return total / calls
    began = time.perf_counter()
    for _ in range(calls):
        model(*inputs)
    return (time.perf_counter() - began) / calls


def _set_seed(seed: int, device: str) -> None:
    torch.manual_seed(seed)
    if device == "cuda":
        torch.cuda.manual_seed(seed)


def _moved(value: Any, device: str) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) else value


def _synchronize(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


if __name__ == "__main__":
    sys.exit(main())
