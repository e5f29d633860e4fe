"""In an untrusted process: does what the candidate returns depend on memory that nobody has written?

Two fills of unwritten memory, each in two runs on the same inputs. An element that is the same within a fill and not
across them was computed from it, or never written. What atomics change from run to run does not count.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Callable, Generator
from typing import Any

import torch

from tools.judge.reference import Reference
from tools.probe.subject import Subject, load
from tools.worker.poison import Poison

FILLS = (0xFF, 0x7F)
"""NaN in every floating type, and 3.4e38 in fp32."""

_M_PERTURB = -6
"""Of glibc's malloc.h."""

_FLOATS = {0xFF: float("nan"), 0x7F: 3.3961514e38}
_CLOSE, _MOST_WRONG, _MOST_COMPARED = 0.05, 0.01, 1 << 20


def measure(args: dict[str, Any], guard: Poison) -> dict[str, Any]:
    """`tests`: for each kind of memory how many elements follow its fill and how many hold it; `damage` of guard bands.

    `armed` is False where nothing fills memory here, so that nothing was tested. `fits` says whether the outputs are
    roughly those of the reference on these inputs.
    """
    subject = load(args)
    fits = _fits(args, subject.call(subject.copies()))
    tests, damage = list[dict[str, Any]](), [0, 0, 0]
    fills = _fills(guard, args["device"])
    for where, fill in fills:
        found, hurt = _test(subject, guard, fill)
        tests.append({"where": where, **found})
        damage = damage if damage[0] else hurt
    return {"tests": tests, "damage": damage, "fits": fits, "armed": bool(fills)}


Fill = Callable[[int], contextlib.AbstractContextManager[None]]


def _fills(guard: Poison, device: str) -> list[tuple[str, Fill]]:
    if device == "cpu":
        armed = guard._guard is not None and guard._guard.available

        @contextlib.contextmanager
        def filled(byte: int) -> Generator[None]:
            with guard.armed(byte), _perturbed(byte):
                yield

        return [("allocated", filled)] if armed else []
    helper = guard._cuda
    if helper is None:
        return []

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


@contextlib.contextmanager
def _perturbed(byte: int) -> Generator[None]:
    """Have glibc fill what malloc and new give, but for blocks of up to about 1 KB that a thread kept for itself. Other
    libraries have no such switch. `byte` 0xFF is 0xFE there, since none would be asked for with that."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:
        yield
        return
    mallopt(_M_PERTURB, byte ^ 0xFF or 1)
    try:
        yield
    finally:
        mallopt(_M_PERTURB, 0)


def _test(subject: Subject, guard: Poison, fill: Fill) -> tuple[dict[str, int], list[int]]:
    """Four runs, of which no more than two outputs are kept at a time: they may be a large part of the memory."""
    first, damage = _run(subject, guard, fill, FILLS[0])
    again, hurt = _run(subject, guard, fill, FILLS[0])
    damage = damage if damage[0] else hurt
    steady = [_same(a, b) for a, b in zip(first, again, strict=True)]
    del again
    other, hurt = _run(subject, guard, fill, FILLS[1])
    damage = damage if damage[0] else hurt
    moved = [~_same(a, b) for a, b in zip(first, other, strict=True)]
    held = [_holds(a, FILLS[0]) & _holds(b, FILLS[1]) for a, b in zip(first, other, strict=True)]
    del first
    again, hurt = _run(subject, guard, fill, FILLS[1])
    damage = damage if damage[0] else hurt
    changed = unwritten = 0
    for i, (a, b) in enumerate(zip(other, again, strict=True)):
        follows = moved[i] & steady[i] & _same(a, b)
        unwritten += int((follows & held[i]).sum())
        changed += int((follows & ~held[i]).sum())
    return {"changed": changed, "unwritten": unwritten, "elements": sum(t.numel() for t in other)}, damage


def _run(subject: Subject, guard: Poison, fill: Fill, byte: int) -> tuple[list[torch.Tensor], list[int]]:
    given = subject.copies()
    with fill(byte):
        outputs = subject.call(given)
        if any(t.is_cuda for t in outputs):
            torch.cuda.synchronize()
        hurt = guard.damage()
        # A candidate may give back the same memory each time.
        return [t.detach().clone() for t in outputs], hurt or [0, 0, 0]


def _same(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    if a.shape != b.shape or a.dtype != b.dtype:
        return torch.zeros(a.shape, dtype=torch.bool, device=a.device)
    return (a == b) | ((a != a) & (b != b))


def _holds(tensor: torch.Tensor, byte: int) -> torch.Tensor:
    """Whether an element consists of that byte and nothing else."""
    if tensor.numel() == 0:
        return torch.zeros(tensor.shape, dtype=torch.bool, device=tensor.device)
    raw = tensor.contiguous().reshape(-1, 1).view(torch.uint8)
    return (raw == byte).all(dim=1).reshape(tensor.shape)


def _fits(args: dict[str, Any], outputs: list[torch.Tensor]) -> bool:
    problem = Reference(args["problem"], args["size"], args["device"])
    seed = int(args["seed"])
    spec, tensors = problem.inputs(seed)
    wanted = problem.run(problem.build(seed), spec, tensors)[1]
    if [t.shape for t in wanted] != [t.shape for t in outputs]:
        return False
    return all(
        _alike(mine.detach().to(theirs.device), theirs.detach()) for mine, theirs in zip(outputs, wanted, strict=True)
    )


def _alike(mine: torch.Tensor, theirs: torch.Tensor) -> bool:
    """Whether nearly all of up to a million elements, evenly drawn, are close."""
    if theirs.numel() == 0:
        return True
    step = max(1, theirs.numel() // _MOST_COMPARED)
    a, b = (t.reshape(-1)[::step].double() for t in (mine, theirs))
    wrong = ~((a - b).abs() <= _CLOSE * b.abs().max()) & ~((a != a) & (b != b)) & (a != b)
    return float(wrong.double().mean()) <= _MOST_WRONG
