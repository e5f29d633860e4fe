"""What the oracle makes of one trial: kept whole, or evaluated anew, a few rows at a time, wherever it is asked for.

In fp64 expected outputs are most of what a trial takes. Where the device's memory is short for that they are not kept,
and an error is added up slice by slice, next to which no whole fp64 output ever exists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

from problems import ProblemError
from tools.judge.errors import Error, error_of, measure, merged, sums
from tools.judge.oracle import NoDouble, saturated

if TYPE_CHECKING:
    from tools.judge.bench import Bench

Tensors = list[torch.Tensor]
Parts = Callable[[], Iterator[tuple[int, int, Tensors]]]
"""Evaluates the oracle on some rows after the other: first row, the row behind the last, the outputs for them."""


class Truth:
    """`kept` are the outputs; None where they are to be made by `again`, or, for errors, by `parts`."""

    def __init__(self, kept: Tensors | None, again: Callable[[], Tensors], parts: Parts) -> None:
        self._kept, self._again, self._parts = kept, again, parts

    def outputs(self) -> Tensors:
        """All outputs, whole."""
        return self._again() if self._kept is None else self._kept

    def measured(self, outputs: Tensors) -> list[Error]:
        """The error of each of `outputs`, which has the shape of the oracle's; there may be fewer of them."""
        if self._kept is not None:
            return [measure(c, o) for c, o in zip(outputs, self._kept, strict=False)]
        found: list[list[float]] = []
        for start, end, piece in self._parts():
            rows = [sums(c[start:end], o) for c, o in zip(outputs, piece, strict=False)]
            found = [merged(a, b) for a, b in zip(found, rows, strict=True)] if found else rows
        return [error_of(row, c.numel()) for row, c in zip(found, outputs, strict=False)]

    def beginning(self, i: int, count: int) -> torch.Tensor:
        """The first `count` elements of output `i`, or of its first rows where those have fewer."""
        first = next(self._parts())[2] if self._kept is None else self._kept
        return first[i].reshape(-1)[:count]

    @property
    def bytes(self) -> int:
        """What is kept."""
        return sum(t.nbytes for t in self._kept or ())


@dataclass(frozen=True)
class Job:
    """What is to be evaluated, and what the reference, as it runs, has made of it."""

    model: torch.nn.Module
    oracle: torch.nn.Module
    spec: dict[str, Any]
    tensors: Tensors
    seed: int | None
    mutated: list[int]
    reference: Tensors
    own: bool = True
    """Whether the inputs are the problem's own: what can't be evaluated in fp64 on these never can."""


def expected(bench: Bench, job: Job) -> Truth:
    """The oracle's outputs, kept unless the bench is short of memory and rows can be evaluated by themselves."""

    def again() -> Tensors:
        return _evaluated(bench, job)

    def sliced() -> bool:
        whole = job.mutated or bench.problem.changing or bench.uses_rng
        return bench.tight and not whole and bench.oracle == "fp64" and bench.double.way == "slices"

    def parts() -> Iterator[tuple[int, int, Tensors]]:
        for start, end, piece in bench.double.parts(job.oracle, job.spec, job.tensors):
            yield start, end, [saturated(t, r[start:end]) for t, r in zip(piece, job.reference, strict=True)]

    kept = None if sliced() else again()
    return Truth(None if sliced() else kept, again, parts)


def _evaluated(bench: Bench, job: Job) -> Tensors:
    """In fp64; where that can't run, in the strictest fp32, which the result then says."""
    if bench.oracle != "fp32" and not bench.uses_rng:
        try:
            found = bench.double.run(job.oracle, job.spec, job.tensors, mutated=job.mutated, reference=job.reference)
            bench.oracle = bench.double.name
            return found
        except ProblemError:
            raise
        except Exception as error:
            if not job.own and not isinstance(error, NoDouble):
                raise
            bench.oracle = "fp32"
    given = [t.clone() for t in job.tensors]
    found = bench.problem.run(job.model, job.spec, given, tf32=False, seed=job.seed)[1]
    return [t.detach() for t in found] + [given[i] for i in job.mutated]
