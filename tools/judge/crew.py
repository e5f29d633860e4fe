"""The worker processes of one judge: warm ones that wait for a candidate, and two that run the reference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tools.judge.bench import Bench
from tools.judge.client import Worker
from tools.judge.failures import ReferenceFailed
from tools.judge.machine import usable_threads
from tools.judge.session import Program, Session
from tools.nursery import Nursery
from tools.sandbox import Limits
from tools.worker.arena import Arena
from tools.worker.gate import BYTES as GATE_BYTES

WORKER_SECONDS = 600.0
SPARES = {"guarded": 2, "plain": 2}
"""Workers kept warm on CUDA, where a context, and above all the profiler's first use, takes seconds."""


class Crew:
    """Starts workers on a bench. `args` are the judge's."""

    def __init__(self, nursery: Nursery, bench: Bench, args: dict[str, Any]) -> None:
        self._nursery, self._bench, self._args = nursery, bench, args
        self._spares: dict[str, list[Worker]] = {kind: [] for kind in SPARES}
        self._references: tuple[Session, Session] | None = None

    @property
    def short(self) -> bool:
        """Whether there is some kind of which no warm process is left."""
        return not all(self._spares.values())

    def refill(self) -> None:
        """Have the next workers warm before they are needed: a CUDA context takes seconds."""
        if self._bench.device != "cuda":
            return
        for kind, count in SPARES.items():
            while len(self._spares[kind]) < count:
                self._spares[kind].append(self._spawn(kind))

    def session(self, program: Program, *, guarded: bool) -> Session:
        """A process for a candidate, which has yet to be loaded: on CUDA, with `guarded`, one whose device memory is
        poisoned and fenced."""
        Worker.settle()
        kind = "guarded" if guarded and self._bench.device == "cuda" else "plain"
        spares = self._spares[kind]
        worker = spares.pop(0) if spares else self._spawn(kind)
        return Session(self._bench, worker, program)

    def references(self, program: Program) -> tuple[Session, Session]:
        """The reference in two processes of the same kind as a candidate's, kept until one of them ends. Raises
        ReferenceFailed when they don't start."""
        if any(reference.worker.dead for reference in self._references or ()):
            self.end_references()
        if self._references is None:
            first, second = (Session(self._bench, self._spawn("trusted"), program) for _ in range(2))
            self._references = first, second
            first.load()
            second.load()
        return self._references

    def rest(self) -> None:
        """Have the reference's processes give back the memory that they only keep."""
        try:
            for reference in self._references or ():
                reference.timed.rest()
        except ReferenceFailed:
            self.end_references()

    def end_references(self) -> None:
        """Kill them: who asks for them next gets new ones."""
        for reference in self._references or ():
            reference.worker.close()
        self._references = None

    def close(self) -> None:
        """Kill every process."""
        for worker in (worker for spares in self._spares.values() for worker in spares):
            worker.close()
        self.end_references()
        Worker.settle()

    def _spawn(self, kind: str) -> Worker:
        trusted = kind == "trusted"
        settings = {
            "device": self._bench.device,
            "threads": usable_threads(),
            "sampler": self._args.get("sampler"),
            "helper": self._args.get("helper"),
            "guarded": kind == "guarded",
            "trusted": trusted,
        }
        arenas = dict(self._bench.arenas)
        if self._bench.device == "cuda":
            arenas["gate"] = Arena.create("cpu", GATE_BYTES)  # one of its own: no other can open or shut it
        return Worker(
            self._nursery,
            arenas,
            settings,
            Limits(seconds=WORKER_SECONDS),
            readable=[],
            hidden=[Path(p) for p in self._args.get("hidden", [])],
            sandboxed=not trusted,
            cache_dir=Path(self._args["cache_dir"]),
        )
