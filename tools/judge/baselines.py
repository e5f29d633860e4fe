"""Baselines: the reference compiled, and with TF32 allowed where it isn't by default, relative to eager.

Each form is timed in turn with eager in one process, so that only ratios are kept; they are cached by problem, device
and version, since compiling takes longer than everything else the judge does.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import numpy as np
import torch

from tools.judge.bench import Bench
from tools.judge.client import ReferenceFailed
from tools.judge.session import Session
from tools.types import DeviceInfo

ROUNDS = 15
COMPILE_SECONDS = 300.0


class Baselines:
    """Times in microseconds of `kinds` (`eager` first) on this bench."""

    def __init__(self, bench: Bench, cache_dir: Path, source: str, info: DeviceInfo, kinds: list[str]) -> None:
        self._bench, self._kinds = bench, list(kinds)
        if bench.device == "cuda" and bench.floor.reference_is_fp32:
            self._kinds += [f"{kind}_tf32" for kind in kinds if kind != "compile_max_autotune"]
        shapes = [(place["shape"], place["dtype"]) for place in bench.slots[0]]
        key = repr([source, shapes, info.name, info.driver, torch.__version__, self._kinds])
        self._path = cache_dir / "baselines" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        self._found: dict[str, float] | None = None

    def microseconds(self, session: Session) -> dict[str, float]:
        """The times, from memory, from the cache, or measured now in the reference's process, `session`. A form that
        can't be compiled is left out."""
        if self._found is None:
            try:
                self._found = {str(k): float(v) for k, v in json.loads(self._path.read_text()).items()}
            except (OSError, ValueError, AttributeError, TypeError):
                self._found = self._measure(session)
                self._path.parent.mkdir(parents=True, exist_ok=True)
                temporary = self._path.with_suffix(".tmp")
                temporary.write_text(json.dumps(self._found))
                temporary.replace(self._path)
        return self._found

    def _measure(self, session: Session) -> dict[str, float]:
        bench = self._bench
        seed = bench.seed_of(1200)
        spec, tensors = bench.problem.inputs(seed)
        bench.write_inputs(tensors, 0)
        del tensors
        bench.make_room(2)
        bench.synchronize()
        rng = seed if bench.uses_rng else None
        times: dict[str, float] = {}
        for kind in self._kinds:
            try:
                session.worker.ask({"op": "variant", "kind": kind}, COMPILE_SECONDS)
                for _ in range(3):
                    session.worker.run(
                        {
                            "op": "time",
                            "inputs": spec,
                            "tensors": bench.slots[0],
                            "landing": 0,
                            "seed": rng,
                            "cold": True,
                            "land": True,
                            "give_back": [],
                        },
                        COMPILE_SECONDS,
                    )
                calls = [session.time(spec, 0, cold=True, seed=rng)[0].us for _ in range(ROUNDS)]
            except ReferenceFailed:
                if session.worker.dead:
                    break
                continue
            times[kind] = float(np.median(calls))
        session.worker.ask({"op": "variant", "kind": "eager"}, COMPILE_SECONDS)
        return times
