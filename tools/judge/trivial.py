"""Answers that need no work, to be held against the judge's rule: zeros, a constant, a remembered output, an input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch

from tools.judge.errors import SLICE
from tools.judge.trial import Trial

SAMPLE = 1 << 20
HEAD = 1 << 16
"""Looked at first: most answers are plainly wrong at the very beginning."""

MOST_INPUTS = 8


@dataclass(frozen=True)
class Answer:
    """`give(trial, i)` is output `i` of this answer, None where it has none of that shape and dtype.

    `code` is that of the finding, `words` complete "passes by …".
    """

    code: str
    words: str
    give: Callable[[Trial, int], torch.Tensor | None]


def answers(first: Trial, second: Trial) -> list[Answer]:
    """The simplest first. The constant and what is remembered come from the problem's own inputs and stay the same on
    any other trial."""
    typical = [_typical(t) for t in first.reference]

    def zeros(trial: Trial, i: int) -> torch.Tensor:
        wanted = trial.reference[i]
        return torch.zeros((), dtype=wanted.dtype, device=wanted.device).expand(wanted.shape)

    def constant(trial: Trial, i: int) -> torch.Tensor:
        return typical[i].expand(trial.reference[i].shape)

    def remembered(trial: Trial, i: int) -> torch.Tensor:
        # On the trial that it comes from it would be right, which says nothing.
        return (first if trial is second else second).reference[i]

    found = [
        Answer("zeros_pass", "returning zeros", zeros),
        Answer("constant_passes", "returning a constant", constant),
        Answer("input_independent", "returning the answer for other inputs", remembered),
    ]
    for j in range(min(len(first.tensors), MOST_INPUTS)):
        found.append(Answer("input_passes", f"returning input {j} unchanged", _input(j)))
    return found


def close(output: torch.Tensor, reference: torch.Tensor, atol: float, rtol: float) -> bool:
    """`torch.allclose` of two tensors of one shape and dtype, in slices."""
    a, b = output.reshape(-1), reference.reshape(-1)
    starts = (0, *range(HEAD, b.numel(), SLICE))
    ends = (*starts[1:], b.numel())
    return all(
        bool(torch.isclose(a[s:e], b[s:e], atol=atol, rtol=rtol).all()) for s, e in zip(starts, ends, strict=True)
    )


def not_finite(tensor: torch.Tensor) -> int:
    """How many elements are NaN or infinite."""
    flat = tensor.reshape(-1)
    return sum(int((~torch.isfinite(flat[s : s + SLICE])).sum()) for s in range(0, flat.numel(), SLICE))


def _input(j: int) -> Callable[[Trial, int], torch.Tensor | None]:
    def give(trial: Trial, i: int) -> torch.Tensor | None:
        given, wanted = trial.tensors[j], trial.reference[i]
        return given if given.shape == wanted.shape and given.dtype == wanted.dtype else None

    return give


def _typical(output: torch.Tensor) -> torch.Tensor:
    """The one value that comes closest: the mean, for integers and bools the most frequent of a sample."""
    if not output.numel():
        return output.new_zeros(())
    if not output.is_floating_point():
        if output.is_complex():
            return output.mean()
        sample = output.reshape(-1)[:SAMPLE]
        return torch.mode(sample.to(torch.int64)).values.to(output.dtype)
    flat = output.reshape(-1)
    total, count = 0.0, 0
    for s in range(0, flat.numel(), SLICE):
        piece = flat[s : s + SLICE].double()
        finite = torch.isfinite(piece)
        total += float(torch.where(finite, piece, 0.0).sum())
        count += int(finite.sum())
    # All NaN, or all the same infinity, is a constant too.
    return torch.tensor(total / count, dtype=output.dtype, device=output.device) if count else flat[0].clone()
