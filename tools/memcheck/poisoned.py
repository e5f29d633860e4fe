"""In an untrusted process: does what the candidate returns depend on memory that nobody has written?

Two fills of unwritten memory, each in two runs on the same inputs. An element that is the same within a fill and not
across them was computed from it, or never written. What atomics change from run to run does not count.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator
from typing import Any

import torch

from tools.judge.reference import Reference
from tools.probe.subject import Subject, load
from tools.worker.poison import Poison

FILLS = (0xFF, 0x7F)
"""NaN in every floating type, and 3.4e38 in fp32."""

_FLOATS = {0xFF: float("nan"), 0x7F: 3.3961514e38}
_CLOSE, _MOST_WRONG = 0.05, 0.01


def measure(args: dict[str, Any], guard: Poison) -> dict[str, Any]:
    """`tests`: for each kind of memory how many elements follow its fill and how many hold it; `damage` of guard bands.

    `fits` says whether the outputs are roughly those of the reference on these inputs.
    """
    subject = load(args)
    fits = _fits(args, subject.call(subject.copies()))
    tests, damage = list[dict[str, Any]](), [0, 0, 0]
    for where, fill in _fills(guard):
        runs: dict[int, list[list[torch.Tensor]]] = {}
        for byte in FILLS:
            runs[byte] = []
            for _ in range(2):
                outputs, hurt = _run(subject, guard, fill, byte)
                runs[byte].append(outputs)
                damage = damage if damage[0] else hurt or damage
        tests.append({"where": where, **_compare(runs)})
    return {"tests": tests, "damage": damage, "fits": fits}


Fill = Callable[[int], contextlib.AbstractContextManager[None]]


def _fills(guard: Poison) -> list[tuple[str, Fill]]:
    helper = guard._cuda
    if helper is None:
        return [("allocated", guard.armed)]

    @contextlib.contextmanager
    def allocated(byte: int) -> Generator[None]:
        helper.poison(byte)
        helper.poison_shared_memory(0.0)
        yield

    @contextlib.contextmanager
    def shared(byte: int) -> Generator[None]:
        helper.poison(0)
        helper.poison_shared_memory(_FLOATS[byte])
        yield

    return [("allocated", allocated), ("shared", shared)]


def _run(subject: Subject, guard: Poison, fill: Fill, byte: int) -> tuple[list[torch.Tensor], list[int] | None]:
    given = subject.copies()
    with fill(byte):
        outputs = subject.call(given)
        if any(t.is_cuda for t in outputs):
            torch.cuda.synchronize()
        hurt = guard.damage()
        return [t.detach().cpu().clone() for t in outputs], hurt


def _compare(runs: dict[int, list[list[torch.Tensor]]]) -> dict[str, int]:
    changed = unwritten = elements = 0
    (a1, a2), (b1, b2) = (runs[byte] for byte in FILLS)
    for first, again, other, other_again in zip(a1, a2, b1, b2, strict=True):
        steady = _same(first, again) & _same(other, other_again)
        moved = steady & ~_same(first, other)
        held = moved & _holds(first, FILLS[0]) & _holds(other, FILLS[1])
        changed += int((moved & ~held).sum())
        unwritten += int(held.sum())
        elements += first.numel()
    return {"changed": changed, "unwritten": unwritten, "elements": elements}


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.shape != b.shape or a.dtype != b.dtype:
        return torch.zeros(a.shape, dtype=torch.bool)
    return (a == b) | ((a != a) & (b != b))


def _holds(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    """Whether an element consists of that byte and nothing else."""
    if tensor.numel() == 0:
        return torch.zeros(tensor.shape, dtype=torch.bool)
    raw = tensor.contiguous().reshape(-1, 1).view(torch.uint8)
    return (raw == byte).all(dim=1).reshape(tensor.shape)


def _fits(args: dict[str, Any], outputs: list[torch.Tensor]) -> bool:
    problem = Reference(args["problem"], args["size"], args["device"])
    seed = int(args["seed"])
    spec, tensors = problem.inputs(seed)
    wanted = problem.run(problem.build(seed), spec, tensors)[1]
    if [t.shape for t in wanted] != [t.shape for t in outputs]:
        return False
    return all(_alike(mine.detach(), theirs.detach()) for mine, theirs in zip(outputs, wanted, strict=True))


def _alike(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    if theirs.numel() == 0:
        return True
    a, b = mine.double(), theirs.double()
    wrong = ~((a - b).abs() <= _CLOSE * b.abs().max()) & ~((a != a) & (b != b)) & (a != b)
    return float(wrong.double().mean()) <= _MOST_WRONG
