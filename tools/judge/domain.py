"""What all draws of an input have in common by construction, and other inputs are to keep: an order, a norm, a range.

Searching in edges that are not sorted, or a factorisation of a matrix that is not symmetric, has no right answer: each
honest kernel gives another one. What is seen in several draws of a problem's own inputs is taken for meant.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

LARGE = 1 << 24
"""Of tensors with more elements than this a sample of the rows is looked at."""

SAMPLE = 1 << 20
CHANCE = 1e-4
"""Rows that are sorted by chance more often than this say nothing."""

LEAST_ROW = 3
LEAST_VALUES = 8
MOST_DEFINITE = 1024
"""Of larger matrices a factorisation takes too long."""


@dataclass(frozen=True)
class Rule:
    """Something that holds for a tensor, and how to have it hold again, in place. `restore` may change nothing, and
    need not succeed: `holds` says so."""

    name: str
    holds: Callable[[torch.Tensor], bool]
    restore: Callable[[torch.Tensor], None]


@dataclass(frozen=True)
class Invariant:
    """What holds for one input in every draw. `rules` tie elements of it to each other or to a set of values, `bounds`
    are its smallest and largest values where they are those of a share or a size (from 0 or -1 on)."""

    rules: tuple[Rule, ...]
    bounds: tuple[float, float] | None = None

    @property
    def structured(self) -> bool:
        """Whether values that are each possible may be impossible together."""
        return bool(self.rules)

    def keeps(self, tensor: torch.Tensor, *, values: bool = True) -> bool:
        """Whether `tensor`, of the same shape, still has it; without `values` its range does not matter."""
        if values and self.bounds is not None and not _within(tensor, *self.bounds):
            return False
        return all(rule.holds(tensor) for rule in self.rules)

    def restore(self, tensor: torch.Tensor, *, values: bool = True) -> None:
        """Change `tensor` in place as little as is simple so that it has it again; ask `keeps` afterwards."""
        if values and self.bounds is not None:
            tensor.copy_(tensor.clamp(*self.bounds))
        for rule in self.rules:
            if not rule.holds(tensor):
                rule.restore(tensor)


def find(draws: Sequence[Sequence[torch.Tensor]]) -> list[Invariant | None]:
    """For each input what two or more draws of it have in common; None where that is nothing."""
    return [_common(given) for given in zip(*draws, strict=True)]


def _common(given: tuple[torch.Tensor, ...]) -> Invariant | None:
    first = given[0]
    if not first.numel() or first.is_complex() or first.dtype is torch.bool or len({t.shape for t in given}) > 1:
        return None
    rules = [r for r in _candidates(given) if all(r.holds(t) for t in given)]
    bounds = _bounds(given) if first.is_floating_point() and first.numel() >= LEAST_VALUES else None
    return Invariant(tuple(rules), bounds) if rules or bounds else None


def _candidates(given: tuple[torch.Tensor, ...]) -> list[Rule]:
    """Rules that may hold for the draws of an input, by its shape, its dtype and its first draw."""
    first, found = given[0], list[Rule]()
    row, floating = first.size(-1) if first.dim() else 0, first.is_floating_point()
    if row >= LEAST_ROW and not floating:
        found.append(Rule("permutation", _is_permutation, _make_permutation))
    if row >= LEAST_ROW and len(given) * first.numel() / row * math.lgamma(row + 1) > -math.log(CHANCE):
        found.extend(_orders(given))
    if not floating:
        if first.numel() >= LEAST_VALUES:
            found.append(Rule("distinct", _is_distinct, _nothing))
        return found
    if row >= LEAST_ROW:
        found.append(Rule("rows sum to one", _sums_to_one, _make_sum_one))
        if not _sums_to_one(first):
            found.append(Rule("rows of length one", _is_unit, _make_unit))
    if row >= LEAST_ROW and first.dim() > 1 and first.size(-2) == row:
        found.extend(_squares(first))
    values = _two_values(first)
    if values is not None:
        found.append(Rule("two values", lambda t: _is_of(t, values), lambda t: _make_of(t, values)))
    return found


def _looked_at(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor, or, where it is large, some whole rows of it as a view."""
    if tensor.numel() <= LARGE:
        return tensor
    while tensor.dim() > 2:
        tensor = tensor.select(0, tensor.size(0) // 2)
    return tensor if tensor.dim() < 2 else tensor[:: max(1, tensor.numel() // SAMPLE)]


def _nothing(tensor: torch.Tensor) -> None:
    del tensor


def _orders(given: tuple[torch.Tensor, ...]) -> list[Rule]:
    """Sorted along the last dimension, up or down; offsets besides, which begin at zero and have the same end."""

    def sorted_as(sign: int, *, strictly: bool) -> Callable[[torch.Tensor], bool]:
        def holds(tensor: torch.Tensor) -> bool:
            rows = _looked_at(tensor)
            a, b = (rows[..., :-1], rows[..., 1:]) if sign > 0 else (rows[..., 1:], rows[..., :-1])
            return bool((a < b if strictly else a <= b).all())

        return holds

    first = given[0]
    sign = 1 if bool((first[..., 0] <= first[..., -1]).all()) else -1
    if bool((_looked_at(first) == first.reshape(-1)[0]).all()):
        return []
    strictly = all(sorted_as(sign, strictly=True)(t) for t in given)
    floating = first.is_floating_point()
    ends = not floating and sign > 0 and all(bool((t[..., 0] == 0).all()) for t in given)
    ends = ends and all(torch.equal(t[..., -1], first[..., -1]) for t in given)
    last = first[..., -1].clone()

    def restore(tensor: torch.Tensor) -> None:
        tensor.copy_(tensor.sort(-1, descending=sign < 0).values)

    def restore_ends(tensor: torch.Tensor) -> None:
        tensor[..., 0] = 0
        tensor[..., -1] = last

    found = [Rule("sorted", sorted_as(sign, strictly=strictly), restore)]
    if ends:
        at_ends = Rule(
            "offsets", lambda t: bool((t[..., 0] == 0).all()) and torch.equal(t[..., -1], last), restore_ends
        )
        found = [at_ends, *found]
    return found


def _is_permutation(tensor: torch.Tensor) -> bool:
    rows = _looked_at(tensor)
    return torch.equal(rows.sort(-1).values, torch.arange(rows.size(-1), device=rows.device).to(rows).expand_as(rows))


def _make_permutation(tensor: torch.Tensor) -> None:
    tensor.copy_(tensor.sort(stable=True, dim=-1).indices.argsort(-1))


def _is_distinct(tensor: torch.Tensor) -> bool:
    ordered = _looked_at(tensor).reshape(-1).sort().values
    return bool((ordered[1:] != ordered[:-1]).all())


def _slack(tensor: torch.Tensor) -> float:
    return 64 * torch.finfo(tensor.dtype).eps


def _sums_to_one(tensor: torch.Tensor) -> bool:
    rows = _looked_at(tensor)
    return bool((rows >= 0).all()) and bool(((rows.sum(-1, dtype=torch.float64) - 1).abs() <= _slack(tensor)).all())


def _make_sum_one(tensor: torch.Tensor) -> None:
    sizes = tensor.double().abs()
    tensor.copy_(sizes / sizes.sum(-1, keepdim=True))


def _is_unit(tensor: torch.Tensor) -> bool:
    squares = _looked_at(tensor).double().square().sum(-1)
    return bool(((squares - 1).abs() <= _slack(tensor)).all())


def _make_unit(tensor: torch.Tensor) -> None:
    exact = tensor.double()
    tensor.copy_(exact / exact.norm(dim=-1, keepdim=True))


def _squares(first: torch.Tensor) -> list[Rule]:
    """Of square matrices: one half zero, symmetric, and positive definite besides."""

    def symmetric(tensor: torch.Tensor) -> bool:
        return bool(((tensor - tensor.mT).abs() <= _slack(tensor) * tensor.abs().max()).all())

    def make_symmetric(tensor: torch.Tensor) -> None:
        tensor.copy_((tensor + tensor.mT) / 2)

    def lower(tensor: torch.Tensor) -> None:
        tensor.copy_(tensor.tril())

    def upper(tensor: torch.Tensor) -> None:
        tensor.copy_(tensor.triu())

    def definite(tensor: torch.Tensor) -> bool:
        return not bool(torch.linalg.cholesky_ex(tensor.double())[1].any())

    if bool((first == first.reshape(-1)[0]).all()):
        return []
    found = [
        Rule("lower triangular", lambda t: not bool(t.triu(1).any()), lower),
        Rule("upper triangular", lambda t: not bool(t.tril(-1).any()), upper),
    ]
    if symmetric(first):
        found.append(Rule("symmetric", symmetric, make_symmetric))
    if symmetric(first) and first.size(-1) <= MOST_DEFINITE:
        found.append(Rule("positive definite", definite, _nothing))
    return found


def _two_values(first: torch.Tensor) -> torch.Tensor | None:
    """The two values, if a tensor has no others: those of a mask or of labels."""
    if first.numel() < LEAST_VALUES:
        return None
    low, high = _looked_at(first).aminmax()
    values = torch.stack([low, high])
    return values if bool(low < high) and _is_of(first, values) else None


def _is_of(tensor: torch.Tensor, values: torch.Tensor) -> bool:
    rows = _looked_at(tensor)
    return bool(((rows == values[0]) | (rows == values[1])).all())


def _make_of(tensor: torch.Tensor, values: torch.Tensor) -> None:
    middle = values.double().mean().to(tensor.dtype)
    tensor.copy_(torch.where(tensor > middle, values[1], values[0]))


def _bounds(given: tuple[torch.Tensor, ...]) -> tuple[float, float] | None:
    """The smallest and the largest value, where they say that a value is a share, a cosine or a size."""
    low = min(float(t.min()) for t in given)
    high = max(float(t.max()) for t in given)
    if low >= 0:
        return low, high if high <= 1 else float("inf")
    return (low, high) if low >= -1 and high <= 1 else None


def _within(tensor: torch.Tensor, low: float, high: float) -> bool:
    least, most = tensor.aminmax()
    return bool(least >= low) and bool(most <= high)
