"""Values of timed calls: none of them known from an earlier call, no row like one that was there before."""

from __future__ import annotations

import random

import pytest
import torch

from tools.judge.mixing import exchange


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def test_every_row_changes_and_no_value_is_lost():
    target, donor = drawn(500, 64), drawn(500, 64, seed=2)
    before = target.clone(), donor.clone()
    address = target.data_ptr()
    exchange(target, donor, random.Random(0))
    assert target.data_ptr() == address
    for now, then in zip((target, donor), before, strict=True):
        assert bool((now != then).any(dim=1).all())
        assert 0.15 < float((now != then).float().mean()) < 0.55
    values = torch.cat([target.flatten(), donor.flatten()]).sort().values
    assert torch.equal(values, torch.cat([t.flatten() for t in before]).sort().values)


def test_no_row_comes_back():
    """Code that remembers rows by value finds none of them again, however long it is timed."""
    pool = [drawn(40, 32, seed=seed) for seed in range(3)]
    order, seen = random.Random(5), set[bytes]()
    for _ in range(60):
        first, second = order.sample(range(3), 2)
        exchange(pool[first], pool[second], order)
        rows = {row.numpy().tobytes() for row in pool[first]}
        assert not rows & seen
        seen |= rows


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool])
def test_layouts_and_types_stay(dtype: torch.dtype):
    target, donor = (drawn(30, 50, seed=seed).round().to(dtype).t() for seed in (1, 2))
    before = target.clone()
    exchange(target, donor, random.Random(0))
    assert (target.dtype, target.stride()) == (dtype, (1, 50))
    assert not torch.equal(target, before)


def test_small_and_broadcast_inputs():
    one, other = torch.zeros(()), torch.ones(())
    exchange(one, other, random.Random(0))
    assert (one.item(), other.item()) == (1.0, 0.0)
    wide, donor = torch.zeros(1, 8).expand(5, 8), torch.ones(1, 8).expand(5, 8)
    exchange(wide, donor, random.Random(0))
    assert 0 < int(wide[0].sum()) <= 8
    assert torch.equal(wide[0], wide[4])
    empty = torch.empty(0, 3)
    exchange(empty, torch.empty(0, 3), random.Random(0))
    assert empty.numel() == 0
