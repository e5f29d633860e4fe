"""The fp64 oracle where memory is short: whole if it fits, else in slices along the batch, else on the host.

In fp64 a problem takes twice the memory that it was made for. Slices are taken where every floating input shares its
first dimension and rows are mapped independently of each other, which is tried and not assumed: the same rows come out
alike whatever rows are with them, and near what the reference made of all rows at once.
"""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import torch

from tools.build.slots import available_memory
from tools.judge.errors import EDGE, measure
from tools.judge.reference import Reference, run_oracle

SMALL = 8
"""A slice is so small a part of the batch where memory is short from the beginning."""

HOST_SECONDS = 30.0
"""An evaluation on the host that takes longer is not repeated for a dozen trials."""

NEAR_REFERENCE = 0.05
SAME = 1e-9
"""Largest difference over the peak, of fp64 results that differ by the order of additions alone."""

Tensors = list[torch.Tensor]
T = TypeVar("T")
_EXHAUSTED = ("out of memory", "can't allocate memory", "alloc_failed", "not enough memory")


class NoDouble(Exception):  # noqa: N818  named for what happened
    """The module can't be evaluated in fp64 here; the message says why."""


def as_double(tensor: torch.Tensor) -> torch.Tensor:
    """A floating tensor in fp64, in memory of its own, which a model may write to."""
    return tensor.clone() if tensor.dtype is torch.float64 else tensor.double()


class DoubleOracle:
    """Evaluates one problem's module in fp64. The way that worked is kept for the next evaluation."""

    def __init__(self, problem: Reference) -> None:
        self.problem = problem
        self.way: Literal["whole", "slices", "host", "none"] = "whole"
        self.rows = 0
        """How many rows a slice has, once slices are known to be right."""

        self.tight = False
        """Whether slices are tried first, and small ones."""

    @property
    def name(self) -> Literal["fp64", "fp64_cpu", "fp32"]:
        """What a result says of the oracle; slices on the device are fp64 as any."""
        return {"host": "fp64_cpu", "none": "fp32"}.get(self.way, "fp64")  # pyright: ignore[reportReturnType]

    def run(
        self,
        model: torch.nn.Module,
        spec: dict[str, Any],
        tensors: Tensors,
        *,
        mutated: Sequence[int] = (),
        reference: Tensors | None = None,
        prepare: Callable[[torch.Tensor], torch.Tensor] = as_double,
    ) -> Tensors:
        """Outputs of the fp64 `model`, and behind them what it made of the inputs `mutated`, on the problem's device.

        `prepare` makes an fp64 tensor of each floating input, or of a slice of one. `reference` are the outputs of the
        reference on the same inputs, without which slices are not tried for the first time. Raises NoDouble, from then
        on at once.
        """
        found = self._run(_Job(self.problem, model, spec, tensors, list(mutated), prepare), reference)
        return [saturated(t, r) for t, r in zip(found, reference or (), strict=False)] + found[len(reference or ()) :]

    def _run(self, job: _Job, reference: Tensors | None) -> Tensors:
        if self.way == "whole" and self.tight and reference is not None:
            self.tight = False  # only once
            if (found := self._in_slices(job, reference, small=True)) is not None:
                self.way = "slices"
                return found
        if self.way == "whole":
            if (found := _unless_exhausted(job.whole)) is not None:
                return found
            self.way = "slices"
        if self.way == "slices":
            if (found := self._in_slices(job, reference)) is not None:
                return found
            self.way = "host"
        if self.way == "host":
            began = time.monotonic()
            found = job.on_host()
            if found is not None and time.monotonic() - began < HOST_SECONDS:
                return found
            self.way = "none"
        raise NoDouble("it needs more memory in fp64 than device and host have, or takes too long on the host")

    def parts(
        self, model: torch.nn.Module, spec: dict[str, Any], tensors: Tensors
    ) -> Iterator[tuple[int, int, Tensors]]:
        """Outputs slice by slice, where that way is known to be right: first row, row behind the last, outputs."""
        assert self.way == "slices"
        job = _Job(self.problem, model, spec, tensors, [], as_double)
        count = job.batch()
        for start in range(0, count, self.rows):
            end = min(start + self.rows, count)
            yield start, end, job.part(start, end)

    def _in_slices(self, job: _Job, reference: Tensors | None, *, small: bool = False) -> Tensors | None:
        count = job.batch()
        if count < 2 or job.mutated or self.problem.changing or (reference is None and not self.rows):
            return None
        rows = self.rows or (max(2, count // SMALL) if small else (count + 1) // 2)
        while rows:
            verified = bool(self.rows) or self._independent(job, rows, reference or [])
            if verified is False:
                return None
            if verified and (found := _unless_exhausted(lambda rows=rows: job.sliced(count, rows))) is not None:
                self.rows = rows
                return found
            rows //= 2
        return None

    def _independent(self, job: _Job, rows: int, reference: Tensors) -> bool | None:
        """Whether rows are mapped one by one; None where a slice of that many does not fit either."""
        try:
            return _unless_exhausted(lambda: _rows_alone(job, rows, reference))
        except Exception:
            # Whatever a module makes of fewer rows than it was written for.
            return False


class _Job:
    """One evaluation, by whatever way."""

    def __init__(
        self,
        problem: Reference,
        model: torch.nn.Module,
        spec: dict[str, Any],
        tensors: Tensors,
        mutated: list[int],
        prepare: Callable[[torch.Tensor], torch.Tensor],
    ) -> None:
        self.problem, self.model, self.spec = problem, model, spec
        self.tensors, self.mutated, self.prepare = tensors, mutated, prepare

    def batch(self) -> int:
        """The first dimension that all floating inputs share; 0 where they don't."""
        sizes = {t.size(0) if t.dim() else 0 for t in self.tensors if t.is_floating_point()}
        return sizes.pop() if len(sizes) == 1 else 0

    def whole(self) -> Tensors:
        return self._evaluate(self.model, [self._doubled(t) for t in self.tensors])

    def part(self, start: int, end: int) -> Tensors:
        """Outputs for the rows from `start` up to `end`."""
        count = self.batch()
        taken = [t[start:end] if t.dim() and t.size(0) == count else t for t in self.tensors]
        return self._evaluate(self.model, [self._doubled(t) for t in taken])

    def sliced(self, count: int, rows: int) -> Tensors:
        """All rows, `rows` at a time."""
        outputs: Tensors = []
        for start in range(0, count, rows):
            end = min(start + rows, count)
            found = self.part(start, end)
            if not outputs:
                outputs = [t.new_empty((count, *t.shape[1:])) for t in found]
            for output, piece in zip(outputs, found, strict=True):
                output[start:end] = piece
        return outputs

    def on_host(self) -> Tensors | None:
        """On the CPU of a machine with another device; None where it has no room or the module does not run there."""
        if self.problem.device == "cpu" or self._host_bytes() > available_memory():
            return None
        try:
            model = copy.deepcopy(self.model).to("cpu")
            found = self._evaluate(model, [self._doubled(t.to("cpu")) for t in self.tensors])
            return [t.to(self.problem.device) for t in found]
        except Exception:
            return None

    def _host_bytes(self) -> int:
        # Each value in fp64, with what an operation makes of it and room for that once more.
        state = self.model.state_dict().values()
        return sum(8 * 4 * t.numel() for t in self.tensors) + sum(2 * t.nbytes for t in state)

    def _doubled(self, tensor: torch.Tensor) -> torch.Tensor:
        return self.prepare(tensor) if tensor.is_floating_point() else tensor.clone()

    def _evaluate(self, model: torch.nn.Module, doubled: Tensors) -> Tensors:
        found = run_oracle(self.problem, model, self.spec, doubled, None)
        return [t.detach() for t in found] + [doubled[i] for i in self.mutated]


def _rows_alone(job: _Job, rows: int, reference: Tensors) -> bool:
    """Whether the second half of the first `rows` rows comes out alike without the first half, and both near what the
    reference made of all rows."""
    first = job.part(0, rows)
    if not first or any(t.dim() == 0 or t.size(0) != rows for t in first) or len(first) != len(reference):
        return False
    second = job.part(rows // 2, rows)
    alike = all(_same(a[rows // 2 :], b) for a, b in zip(first, second, strict=True))
    return alike and all(_near(whole, part) for whole, part in zip(reference, first, strict=True))


def saturated(truth: torch.Tensor, reference: torch.Tensor) -> torch.Tensor:
    """fp64 values with finite ones beyond the reference's type made what that type has for them: infinite where the
    reference overflowed to the same infinity, and its largest number elsewhere, which is what a module means by the
    largest number of its type, or by one that it puts in place of infinity. Those at the edge stay what they are.
    `reference` has the shape of `truth`."""
    if not truth.is_floating_point() or not reference.is_floating_point() or not truth.numel():
        return truth
    most = torch.finfo(reference.dtype).max
    least, largest = truth.aminmax()
    if reference.dtype is torch.float64 or (bool(least >= -most) and bool(largest <= most)):
        return truth
    beyond = torch.isfinite(truth) & (truth.abs() > most * (1 + EDGE))
    if truth.shape != reference.shape:
        return torch.where(beyond, truth.clamp(-most, most), truth)
    overflowed = beyond & torch.isinf(reference) & (reference.sign() == truth.sign())
    return torch.where(overflowed, reference.double(), torch.where(beyond, truth.clamp(-most, most), truth))


def exhausted(error: Exception) -> bool:
    """Whether an exception is for want of memory."""
    text = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or any(e in text for e in _EXHAUSTED)


def _unless_exhausted(evaluate: Callable[[], T]) -> T | None:
    try:
        return evaluate()
    except (RuntimeError, MemoryError) as error:
        if not exhausted(error):
            raise
    # Only here is what the evaluation held let go of, with the exception's traceback.
    if torch.cuda.is_initialized():
        torch.cuda.empty_cache()
    return None


def _same(a: torch.Tensor, b: torch.Tensor) -> bool:
    if a.shape != b.shape:
        return False
    if not a.is_floating_point():
        return torch.equal(a, b)
    found = measure(a, b)
    return found.unsound == 0 and found.maximum <= SAME * found.peak


def _near(whole: torch.Tensor, part: torch.Tensor) -> bool:
    """Whether the reference, on all rows, agrees with the oracle on some of them."""
    if whole.dim() == 0 or whole.shape[1:] != part.shape[1:] or whole.size(0) < part.size(0):
        return False
    if not whole.is_floating_point():
        return bool((whole[: part.size(0)] == part).double().mean() > 1 - NEAR_REFERENCE)
    found = measure(whole[: part.size(0)], part)
    return found.unsound == 0 and found.relative < NEAR_REFERENCE
