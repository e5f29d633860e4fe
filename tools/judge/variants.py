"""Inputs besides the problem's own, kept within what the problem is made for.

What all draws have in common by construction (`domain`) is kept in each variant. That values are shares or sizes may be
chance, and a negated input tells a kernel that leaves out an absolute value: a range is kept only where the reference
is lost beyond it, by an exception or by values that are no numbers, or where trying that would be the end of the
process, as a failed assertion on a GPU is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from tools.judge.errors import identical
from tools.judge.inputs import ELEMENT, HUGE, OWN, change_one_element, derive, other_draws, put_outlier
from tools.judge.trial import Trial

if TYPE_CHECKING:
    from tools.judge.bench import Bench
    from tools.judge.domain import Invariant

TRIES = 8
"""An element that has to stay as it is says nothing; another one may do."""

_ASSERTS = re.compile(
    r"binary_cross_entropy|BCELoss|multinomial|bernoulli|\.(long|int)\(|torch\.u?int\d|torch\.(long|int)\b|bucketize"
    r"|searchsorted|histc|one_hot|embedding|Embedding"
)
"""Functions that refuse values, and integers made of inputs that something may be indexed by."""


def within(
    changed: Sequence[torch.Tensor],
    own: Sequence[torch.Tensor],
    domain: Sequence[Invariant | None],
    *,
    values: bool,
) -> list[torch.Tensor]:
    """`changed` with what is lost of `domain` restored (without `values` the ranges may stay lost), and the problem's
    `own` input wherever that can't be done."""
    found: list[torch.Tensor] = []
    for tensor, before, invariant in zip(changed, own, domain, strict=True):
        if tensor is before or invariant is None or invariant.keeps(tensor, values=values):
            found.append(tensor)
            continue
        restored = tensor.clone(memory_format=torch.preserve_format)
        invariant.restore(restored, values=values)
        found.append(restored if invariant.keeps(restored, values=values) else before)
    return found


def special(bench: Bench, kind: str, index: int) -> Trial:
    """The trial on inputs of a kind besides the own ones."""
    seed = bench.seed_of(index)
    spec, tensors = bench.problem.inputs(seed)
    # Outliers come in pairs: what leaves out one half of the data, whichever, leaves out one of the two.
    places = other_draws(bench.seed_of(index - index % 2) if kind == HUGE else seed, bench.device)
    changed = derive(kind, tensors, places, across=kind == HUGE and index % 2 == 1)
    return _tried(bench, kind, seed, spec, changed, tensors)


def one_element(bench: Bench, base: Trial) -> tuple[Trial | None, str]:
    """The trial on the inputs of `base` with one element changed, and which; None where none can be."""
    generator = torch.Generator(bench.device).manual_seed(base.seed + 7)
    for _ in range(TRIES):
        changed, where = change_one_element(base.tensors, generator)
        if not where:
            break
        trial = _tried(bench, ELEMENT, base.seed, base.spec, changed, base.tensors)
        if not all(map(identical, trial.tensors, base.tensors)):
            return trial, where
    return None, ""


def takes_outlier(bench: Bench, which: int) -> bool:
    """Whether input `which` may hold one element that outweighs all others: the reference answers, by numbers."""
    base, invariant = bench.trial(OWN, 0), bench.domain[which]
    if invariant is not None and (invariant.structured or (invariant.bounds is not None and _may_assert(bench))):
        return False
    changed = [t.clone(memory_format=torch.preserve_format) if i == which else t for i, t in enumerate(base.tensors)]
    put_outlier(changed[which], other_draws(base.seed, bench.device), None)
    trial = bench.compute(HUGE, base.seed, base.spec, changed)
    return not trial.refused and not _lost(trial, bench)


def _may_assert(bench: Bench) -> bool:
    """Whether trying values out of range may be the end of the process."""
    return bench.device == "cuda" and _ASSERTS.search(bench.source) is not None


def _tried(
    bench: Bench, kind: str, seed: int, spec: dict[str, Any], changed: list[torch.Tensor], own: list[torch.Tensor]
) -> Trial:
    """The trial on `changed`, kept within what all draws have in common where that is needed. Where the reference gives
    NaN in an output that has none on the problem's own inputs, what it should be is nobody's word."""
    trial = _within_reach(bench, kind, seed, spec, changed, own)
    return trial.unlike() if _lost(trial, bench) else trial


def _within_reach(
    bench: Bench, kind: str, seed: int, spec: dict[str, Any], changed: list[torch.Tensor], own: list[torch.Tensor]
) -> Trial:
    domain = bench.domain
    ranges = any(d is not None and d.bounds is not None for d in domain)
    if not (ranges and _may_assert(bench)):
        trial = bench.compute(kind, seed, spec, within(changed, own, domain, values=False))
        if not ranges or not (trial.refused or _lost(trial, bench)):
            return trial
    return bench.compute(kind, seed, spec, within(changed, own, domain, values=True))


def _lost(trial: Trial, bench: Bench) -> bool:
    """Whether the reference gives NaN in an output that has none on the problem's own inputs."""
    return any(has and not had for has, had in zip(trial.nans, bench.nans, strict=False))
