"""Before anything is allocated: does the problem fit on this device?

Sizes are read off a run on the `meta` device, which takes no memory, in a process of its own, so that nothing that the
problem keeps (module globals, caches) is left behind by it.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import select
import signal
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from types import ModuleType
from typing import Any, Literal

import torch

from problems import ProblemError, analyse
from tools.build.slots import available_memory
from tools.judge.reference import Reference

ESTIMATE_SECONDS = 10.0
CONTEXTS = 4 << 30
"""What seven processes take on a device before they do anything."""


@dataclass(frozen=True)
class Sizes:
    """Bytes of inputs, outputs and weights: as they are, and with every floating value in fp64."""

    inputs: int
    outputs: int
    weights: int
    inputs64: int
    outputs64: int
    weights64: int

    def needed(self, *, fp64: bool) -> int:
        """Bytes that judging takes at least: two trials with their expectations, the oracle at work, the buffers
        shared with the candidate, and the candidate's and the reference's own processes."""
        expected = self.outputs64 if fp64 else self.outputs
        trials = 2 * (self.inputs + self.outputs + expected)
        oracle = self.inputs64 + self.weights64 if fp64 else self.inputs
        shared = 2 * self.inputs + self.outputs + self.weights
        return trials + oracle + shared + self.weights + 2 * (self.weights + self.outputs)

    @property
    def comfortable(self) -> int:
        """Bytes with which two trials are kept with their expectations in fp64 while those of a third are made, beside
        what a candidate's own process takes and an earlier output of it."""
        trials = 2 * (self.inputs + self.outputs + self.outputs64)
        oracle = self.inputs64 + self.weights64 + self.outputs64
        shared = 2 * self.inputs + self.outputs + self.weights
        return trials + oracle + shared + self.inputs + 3 * (self.weights + self.outputs) + CONTEXTS


def check_size(source: str, size: str, device: Literal["cuda", "cpu"]) -> bool:
    """Whether memory is short: for the problem, not for keeping expected outputs in fp64. Raises ProblemError, with the
    numbers, when the problem is larger than the device's free memory.

    A problem whose sizes can't be found out in advance passes. On CUDA an oracle in fp32 is what is done where memory
    is short; on the CPU, where running out ends the process, fp64 has to fit.
    """
    sizes = estimate(source, size)
    if sizes is None:
        return False
    free = torch.cuda.mem_get_info()[0] if device == "cuda" else available_memory()
    needed = sizes.needed(fp64=device == "cpu")
    if needed <= free:
        return sizes.comfortable > free
    smaller = (
        "run it with --size small"
        if size == "full" and analyse(source).small
        else "define SMALL in the problem file with smaller sizes, and run it with --size small"
        if size == "full"
        else "make the sizes in SMALL smaller"
    )
    raise ProblemError(
        f"The problem is larger than this device: judging it takes at least {_size(needed)} and {_size(free)} are free "
        f"(inputs {_size(sizes.inputs)}, outputs {_size(sizes.outputs)}, weights {_size(sizes.weights)}; kept in two "
        f"trials with their expected outputs, and in the buffers shared with the candidate). "
        f"To judge it, {smaller}, or use a device with more memory."
    )


def estimate(source: str, size: str) -> Sizes | None:
    """The problem's sizes; None where its code does not run on `meta` or takes longer than ten seconds."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        # Whatever happens here, this process must never return into the judge's code.
        with contextlib.suppress(BaseException):
            os.close(reader)
            _limit_memory()
            if "dynamo" not in source and "compile" not in source:
                _WithoutDynamo.install()
            os.write(writer, json.dumps(_measure(source, size)).encode())
        os._exit(0)
    os.close(writer)
    try:
        reply = _read(reader, ESTIMATE_SECONDS)
    finally:
        os.close(reader)
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return Sizes(*json.loads(reply)) if reply else None


class _WithoutDynamo(ModuleType):
    """In the place of torch._dynamo, whose import takes a second: many operators on `meta` ask it for `disable`, and
    for nothing else. What asks for more gets the real one."""

    name = "torch._dynamo"

    @classmethod
    def install(cls) -> None:
        if cls.name not in sys.modules:
            sys.modules[cls.name] = torch._dynamo = cls(cls.name)

    @staticmethod
    def disable(fn: Callable[..., Any], *_: object, **__: object) -> Callable[..., Any]:
        return fn

    def __getattr__(self, name: str) -> Any:
        if sys.modules.get(self.name) is self:
            del sys.modules[self.name]
        torch._dynamo = importlib.import_module(self.name)
        return getattr(torch._dynamo, name)


def _measure(source: str, size: str) -> list[int]:
    with torch.device("meta"):
        problem = Reference(source, size, "meta")
        model = problem.build(0)
        spec, inputs = problem.inputs(0)
        outputs: list[torch.Tensor] = []
        with contextlib.suppress(Exception):
            outputs = problem.run(model, spec, inputs)[1]
    groups = (inputs, outputs, list(model.state_dict().values()))
    return [_bytes(group, doubled=doubled) for doubled in (False, True) for group in groups]


def _bytes(tensors: Iterable[torch.Tensor], *, doubled: bool) -> int:
    return sum(t.numel() * (8 if doubled and t.is_floating_point() else t.dtype.itemsize) for t in tensors)


def _limit_memory() -> None:
    """A problem that makes its inputs without torch really makes them: end this process before the machine does."""
    most = available_memory() + (2 << 30)
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _read(descriptor: int, seconds: float) -> bytes:
    """What is written until the other end closes; empty when that takes longer than `seconds`."""
    found, stop = b"", time.monotonic() + seconds
    while select.select([descriptor], [], [], max(stop - time.monotonic(), 0))[0]:
        piece = os.read(descriptor, 4096)
        if not piece:
            return found
        found += piece
    return b""


def _size(count: int) -> str:
    if count < 1 << 30:
        return f"{count / (1 << 20):.0f} MiB"
    return f"{count / (1 << 30):.3g} GiB" if count < 1 << 40 else f"{count / (1 << 40):.3g} TiB"
