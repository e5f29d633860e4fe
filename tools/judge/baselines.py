"""Baselines: the reference compiled, and with TF32 allowed where it isn't by default, relative to eager.

All forms take turns in one process, call by call in random order, and what counts is the ratio to eager in the same
round. They are cached by problem, device and version, since compiling takes longer than everything else the judge does.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import TypeAdapter

from tools.judge import statistics
from tools.judge.bench import Bench
from tools.judge.failures import ReferenceFailed
from tools.judge.session import Session
from tools.types import DeviceInfo, Interval, PrecisionClass, Record

ROUNDS = 15
COMPILE_SECONDS = 300.0
TF32 = "_tf32"
"""Ends the names of forms with TF32 allowed."""


class Baseline(Record):
    """A form of the reference: microseconds of a call, and how many times as long as eager it takes."""

    us: float
    to_eager: Interval


_KEPT = TypeAdapter(dict[str, Baseline])


def best(baselines: dict[str, Baseline], demanded: PrecisionClass | None) -> str | None:
    """The fastest one of the precision class that a candidate is held to. Where the reference runs in fp32 and nothing
    less was asked for, forms with TF32 are not what a candidate may be compared with."""
    coarse = demanded in (PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16)
    found = [kind for kind in baselines if coarse or not kind.endswith(TF32)]
    return min(found, key=lambda kind: baselines[kind].us) if found else None


class Baselines:
    """Times of `kinds` (`eager` first) on this bench."""

    def __init__(self, bench: Bench, cache_dir: Path, source: str, info: DeviceInfo, kinds: list[str]) -> None:
        self._bench, self._kinds = bench, list(kinds)
        if bench.device == "cuda" and bench.floor.reference_is_fp32:
            self._kinds += [kind + TF32 for kind in kinds if kind != "compile_max_autotune"]
        shapes = [(place["shape"], place["dtype"]) for place in bench.slots[0]]
        key = repr([source, shapes, info.name, info.driver, torch.__version__, self._kinds])
        self._path = cache_dir / "baselines" / f"{hashlib.sha256(key.encode()).hexdigest()[:24]}.json"
        self._found: dict[str, Baseline] | None = None

    def timed(self, reference: Callable[[], Session]) -> dict[str, Baseline]:
        """The times, from memory, from the cache, or measured now in the process that `reference` gives, another one
        where that has died of it. A form that can't be compiled is left out."""
        if self._found is None:
            try:
                self._found = _KEPT.validate_json(self._path.read_bytes())
            except (OSError, ValueError):
                self._found = self._measure(reference(), self._kinds) or self._measure(reference(), ["eager"])
                self._path.parent.mkdir(parents=True, exist_ok=True)
                temporary = self._path.with_suffix(".tmp")
                temporary.write_bytes(_KEPT.dump_json(self._found))
                temporary.replace(self._path)
        return self._found

    def _measure(self, session: Session, kinds: list[str]) -> dict[str, Baseline]:
        bench = self._bench
        seed = bench.seed_of(1200)
        spec, tensors = bench.problem.inputs(seed)
        bench.write_inputs(tensors, 0)
        del tensors
        bench.make_room(2)
        bench.synchronize()
        rng = seed if bench.uses_rng else None
        ready = [kind for kind in kinds if self._prepared(session, spec, rng, kind)]
        rounds: list[dict[str, float]] = []
        while len(rounds) < ROUNDS and "eager" in ready:
            found = {kind: self._timed(session, spec, rng, kind) for kind in random.sample(ready, len(ready))}
            rounds.append({kind: us for kind, us in found.items() if us is not None})
            # What went well once may not beside the others.
            ready = [kind for kind in ready if found[kind] is not None]
        if not session.worker.dead:
            session.worker.ask({"op": "form", "kind": "eager"}, COMPILE_SECONDS)
        if "eager" not in ready:
            return {}
        times = {kind: np.array([found[kind] for found in rounds]) for kind in ready}
        ratios = {kind: statistics.ratio(column, times["eager"]) for kind, column in times.items()}
        eager = float(np.median(times["eager"]))
        return {kind: Baseline(us=eager * ratio.value, to_eager=ratio) for kind, ratio in ratios.items()}

    def _timed(self, session: Session, spec: dict[str, Any], seed: int | None, kind: str) -> float | None:
        """Microseconds of one call; None where it fails."""
        try:
            session.worker.ask({"op": "form", "kind": kind}, COMPILE_SECONDS)
            return session.timed.time(spec, 0, cold=True, seed=seed)[0].us
        except ReferenceFailed:
            return None

    def _prepared(self, session: Session, spec: dict[str, Any], seed: int | None, kind: str) -> bool:
        """Have a form compiled and called as often as compiling takes place. False where it can't be."""
        try:
            session.worker.ask({"op": "form", "kind": kind}, COMPILE_SECONDS)
            for _ in range(3):
                session.timed.time(spec, 0, cold=True, seed=seed, patience=COMPILE_SECONDS)
        except ReferenceFailed:
            return False
        return True
