"""What inputs have in common by construction is found in a few draws, told when it is lost, and restored where that is
simple."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F

from tools.judge.domain import Invariant, find

Draw = Callable[[], torch.Tensor]


def offsets() -> torch.Tensor:
    cut = torch.sort(torch.randperm(99)[:3] + 1).values
    return torch.cat([torch.tensor([0]), cut, torch.tensor([100])]).int()


def positive_definite() -> torch.Tensor:
    a = torch.randn(2, 16, 16)
    return a @ a.mT + torch.eye(16)


DRAWS: dict[str, Draw] = {
    "sorted": lambda: torch.cumsum(torch.rand(64) + 0.05, 0),
    "sorted down": lambda: -torch.cumsum(torch.rand(4, 64), -1),
    "sorted with ties": lambda: torch.randint(0, 9, (64,)).sort().values,
    "offsets": offsets,
    "permutation": lambda: torch.randperm(50),
    "permuted rows": lambda: torch.stack([torch.randperm(20) for _ in range(5)]),
    "distinct": lambda: torch.randperm(50)[:20],
    "symmetric": lambda: (lambda a: a + a.mT)(torch.randn(3, 12, 12)),
    "positive definite": positive_definite,
    "lower triangular": lambda: torch.tril(torch.randn(16, 16)),
    "upper triangular": lambda: torch.triu(torch.rand(16, 16)),
    "rows of length one": lambda: F.normalize(torch.randn(40, 16), dim=1),
    "shares": lambda: torch.softmax(torch.randn(40, 16), -1),
    "mask": lambda: (torch.rand(40, 16) > 0.5).float(),
    "labels": lambda: torch.randint(0, 2, (40,)).float() * 2 - 1,
}
RANGES: dict[str, Draw] = {
    "probabilities": lambda: torch.rand(100),
    "sizes": lambda: torch.randn(100).abs() * 5,
    "cosines": lambda: torch.cos(torch.randn(100)),
}
NOTHING: dict[str, Draw] = {
    "normal": lambda: torch.randn(40, 40),
    "integers": lambda: torch.randint(0, 9, (100,)),
    "bools": lambda: torch.rand(100) > 0.5,
    "complex": lambda: torch.randn(10, dtype=torch.complex64),
    "empty": lambda: torch.empty(0, 4),
    "short": lambda: torch.randn(3),
    "scalar": lambda: torch.randn(()),
    "not a number": lambda: torch.where(torch.rand(100) < 0.1, torch.nan, torch.rand(100)),
}


def found(draw: Draw) -> Invariant | None:
    torch.manual_seed(1)
    (invariant,) = find([[draw()] for _ in range(3)])
    return invariant


@pytest.mark.parametrize("name", DRAWS)
def test_structure_is_found_and_told_when_it_is_lost(name: str):
    invariant = found(DRAWS[name])
    assert invariant is not None
    assert invariant.structured
    assert invariant.keeps(DRAWS[name](), values=False)
    drawn = DRAWS[name]()
    lost = 3 * torch.randn(drawn.shape) if drawn.is_floating_point() else torch.randint(0, 4, drawn.shape)
    assert not invariant.keeps(lost, values=False)


@pytest.mark.parametrize("name", [n for n in DRAWS if n not in ("distinct", "positive definite")])
def test_structure_is_restored(name: str):
    invariant = found(DRAWS[name])
    assert invariant is not None
    torch.manual_seed(2)
    a, b = DRAWS[name](), DRAWS[name]()
    mixed = torch.where(torch.arange(a.numel()).reshape(a.shape) % 3 == 0, a, b)
    invariant.restore(mixed)
    assert invariant.keeps(mixed) or name == "offsets"


@pytest.mark.parametrize("name", RANGES)
def test_a_range_is_found_and_values_outside_are_brought_back(name: str):
    invariant = found(RANGES[name])
    assert invariant is not None
    assert not invariant.structured
    changed = -3 * RANGES[name]() - 2
    assert invariant.keeps(changed, values=False)
    assert not invariant.keeps(changed)
    invariant.restore(changed)
    assert invariant.keeps(changed)


@pytest.mark.parametrize("name", NOTHING)
def test_nothing_is_found_where_nothing_is_meant(name: str):
    assert found(NOTHING[name]) is None


@pytest.mark.parametrize("value", [0.5, 3.0])
def test_constants_have_no_structure(value: float):
    invariant = found(lambda: torch.full((16, 16), value))
    assert invariant is not None
    assert not invariant.structured


def test_shapes_that_change_from_draw_to_draw_say_nothing():
    assert find([[torch.arange(10)], [torch.arange(11)]]) == [None]
