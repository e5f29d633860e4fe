"""Which entry of a candidate's state gets which of the reference's weights."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch

Entry = tuple[str, str, tuple[int, ...]]


@dataclass(frozen=True)
class Mapping:
    """`pairs` are (candidate's name, reference's name); `how` says in words what was matched."""

    pairs: list[tuple[str, str]]
    how: str
    complete: bool


def entries(model: torch.nn.Module) -> list[Entry]:
    """Name, dtype and shape of each entry of a module's state."""
    return [(n, str(v.dtype).removeprefix("torch."), tuple(v.shape)) for n, v in model.state_dict().items()]


def match(reference: list[Entry], candidate: list[Entry], digests: tuple[dict[str, str], dict[str, str]]) -> Mapping:
    """Match by name and shape; what is left by equal values, since both were constructed under one seed; what is left
    then by shape, where only one of each is left. `digests` are hashes of the values: the reference's, the candidate's.
    """
    if not reference:
        return Mapping([], "the problem has no weights", complete=True)
    there = {name: (dtype, shape) for name, dtype, shape in candidate}
    pairs = [(n, n) for n, dtype, shape in reference if there.get(n) == (dtype, shape)]
    named = len(pairs)
    if named < len(reference):
        done = {n for n, _ in pairs}
        left = [e for e in reference if e[0] not in done]
        free = [e for e in candidate if e[0] not in done]
        ours, theirs = digests
        by_value = _unique(left, free, lambda e, side: (side[e[0]], *e[1:]), ours, theirs)
        pairs += by_value
        done = {r for _, r in pairs} | {c for c, _ in pairs}
        left, free = [e for e in left if e[0] not in done], [e for e in free if e[0] not in done]
        pairs += _unique(left, free, lambda e, _side: e[1:], ours, theirs)
    if len(pairs) < len(reference):
        missing = len(reference) - len(pairs)
        how = f"{missing} of {len(reference)} weights have no counterpart: judged on seeded construction alone"
        return Mapping([], how, complete=False)
    how = f"{named} of {len(reference)} weights copied by name"
    if named < len(reference):
        how += f", {len(reference) - named} by value or shape (their names differ)"
    return Mapping(pairs, how, complete=True)


def _unique(
    left: list[Entry],
    free: list[Entry],
    key: Callable[[Entry, dict[str, str]], object],
    ours: dict[str, str],
    theirs: dict[str, str],
) -> list[tuple[str, str]]:
    """Pairs (candidate's, reference's) of entries whose key occurs once on both sides."""
    mine = Counter(key(e, ours) for e in left)
    yours = Counter(key(e, theirs) for e in free)
    by_key = {key(e, theirs): e[0] for e in free}
    return [(by_key[k], e[0]) for e in left if mine[k := key(e, ours)] == 1 and yours.get(k) == 1]


def vary_constants(model: torch.nn.Module, like: torch.nn.Module, seed: int) -> None:
    """Give other values to those weights of `model` that are the same in `like`, another construction of it.

    A weight that every construction makes the same (ones, zeros) shows in no output that it was left out. Values keep
    their sign, zeros get small ones. Buffers and frozen parameters are left alone: they may be no weights (masks).
    """
    generator = torch.Generator().manual_seed(seed)
    fixed = dict(like.named_parameters())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            other = fixed.get(name)
            if other is None or not weight.requires_grad or not weight.is_floating_point():
                continue
            if weight.shape == other.shape and torch.equal(weight, other):
                scale = torch.rand(weight.shape, generator=generator).to(weight)
                weight.copy_(torch.where(weight == 0, scale - 0.5, weight * (scale + 0.5)))
