"""Inputs of other kinds do what they say, keep shape, dtype and layout, and leave indices and masks alone."""

from __future__ import annotations

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.inputs import SHIFT, SPECIAL, TIED, change_one_element, derive


def generator(seed: int = 0) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def drawn(*shape: int, seed: int = 1) -> torch.Tensor:
    return torch.randn(*shape, generator=generator(seed))


def derived(kind: str, t: torch.Tensor, seed: int = 0) -> torch.Tensor:
    (found,) = derive(kind, [t], generator(seed))
    return found


@pytest.mark.parametrize("kind", SPECIAL)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_shape_dtype_and_layout_stay(kind: str, dtype: torch.dtype):
    t = drawn(8, 32, 33).to(dtype)
    before = t.clone()
    found = derived(kind, t)
    assert (found.shape, found.dtype) == (t.shape, dtype)
    assert torch.equal(t, before)
    assert not torch.equal(found, t)
    assert bool(torch.isfinite(found).all())


@pytest.mark.parametrize("kind", SPECIAL)
def test_integers_and_bools_are_left_alone(kind: str):
    given = [torch.arange(10), torch.arange(10) > 4, torch.arange(10, dtype=torch.uint8)]
    found = derive(kind, given, generator())
    assert all(a is b for a, b in zip(found, given, strict=True))


@pytest.mark.parametrize("kind", SPECIAL)
def test_empty_and_scalar_inputs_are_no_trouble(kind: str):
    assert derived(kind, torch.empty(0, 4)).shape == (0, 4)
    assert derived(kind, torch.tensor(0.3)).shape == ()


def test_an_unknown_kind_is_an_error():
    with pytest.raises(ValueError, match="no such kind"):
        derive("no such kind", [drawn(3)], generator())


def test_kinds_of_scale_shift_and_sign():
    t = drawn(100)
    assert torch.equal(derived("scaled_up", t), t * 1e3)
    assert torch.equal(derived("scaled_down", t), t * 1e-3)
    assert torch.equal(derived("shifted_up", t), t + SHIFT)
    assert torch.equal(derived("shifted_down", t), t - SHIFT)
    assert torch.equal(derived("negated", t), -t)


def test_sparse_keeps_about_a_tenth():
    t = drawn(100_000)
    found = derived("sparse", t)
    kept = found != 0
    assert 0.08 < float(kept.float().mean()) < 0.12
    assert torch.equal(found[kept], t[kept])


@pytest.mark.parametrize(("kind", "value"), [("mostly_zero", 0.0), ("mostly_one", 1.0)])
def test_nearly_all_of_one_value(kind: str, value: float):
    found = derived(kind, drawn(100_000))
    share = float((found == value).float().mean())
    assert 0.98 < share < 1.0


@pytest.mark.parametrize("power", [1, 2])
def test_uneven_inputs_lie_for_the_most_part_in_one_element(power: int):
    given = [drawn(64, 100), drawn(64, 100, seed=2)]
    first, second = derive("uneven", given, generator())
    sizes = torch.cat([first.flatten(), second.flatten()]).abs() ** power
    largest = sizes.argmax()
    assert float(sizes[largest]) > 0.5 * float(sizes.sum())
    assert bool((sizes > 0).all())
    assert float(first.abs().max()) == pytest.approx(100 * float(given[0].abs().mean()), rel=1e-5)
    places = {int(derived("uneven", given[0], seed).abs().argmax()) for seed in range(20)}
    assert len(places) > 15


def test_uneven_inputs_keep_signs_strides_and_what_is_not_finite():
    t = drawn(40, 50).abs().t()
    assert bool((derived("uneven", t) > 0).all())
    assert bool((derived("uneven", -t) < 0).all())
    assert derived("uneven", t).stride() == t.stride()
    masked = torch.full((2000,), -float("inf"))
    masked[:1000] = drawn(1000)
    found = derived("uneven", masked)
    assert bool(torch.isfinite(found[:1000]).all())
    assert derived("uneven", torch.full((9,), -float("inf"))).isinf().all()
    assert bool((derived("uneven", torch.zeros(100)) == 0).all())


def test_ties_are_many_equal_values():
    found = derived("ties", drawn(10_000))
    assert torch.equal(found * 4, (found * 4).round())
    assert len(found.unique()) < 50


@pytest.mark.parametrize("kind", sorted({*TIED} - {"uneven", "far_down"}))
def test_kinds_with_equal_values_are_marked_as_such(kind: str):
    found = derived(kind, drawn(10_000))
    assert len(found.unique()) < 0.2 * found.numel()


def test_the_same_generator_gives_the_same_inputs_and_another_others():
    t = drawn(1000)
    for kind in ("sparse", "mostly_zero"):
        assert torch.equal(derived(kind, t, 3), derived(kind, t, 3))
        assert not torch.equal(derived(kind, t, 3), derived(kind, t, 4))


def test_one_element_is_changed_plainly_and_named():
    given = [drawn(5, 7), torch.arange(9), drawn(3, seed=2)]
    hit: set[str] = set()
    for seed in range(40):
        found, where = change_one_element(given, generator(seed))
        changed = [(i, a != b) for i, (a, b) in enumerate(zip(given, found, strict=True)) if not torch.equal(a, b)]
        ((which, mask),) = changed
        assert int(mask.sum()) == 1
        assert where == f"input {which} at {mask.nonzero()[0].tolist()}"
        difference = (found[which] - given[which])[mask].abs().item()
        assert difference >= 3.0
        hit.add(where)
    assert len(hit) > 10
    assert {w.split()[1] for w in hit} == {"0", "2"}


def test_there_may_be_no_element_to_change():
    given = [torch.arange(9), torch.empty(0)]
    found, where = change_one_element(given, generator())
    assert where == ""
    assert found == given


def test_a_changed_element_keeps_the_strides_of_its_tensor():
    t = drawn(6, 8).t()
    (found,), _ = change_one_element([t], generator())
    assert found.stride() == t.stride()


@pytest.mark.parametrize(("kind", "times"), [("one_large", 1e3), ("one_huge", 1e4)])
def test_one_outlier_somewhere_in_one_input(kind: str, times: float):
    given = [drawn(1000, 100), drawn(1000, 100, seed=2).abs().t(), torch.arange(9)]
    places: set[tuple[int, int]] = set()
    for seed in range(30):
        found = derive(kind, given, generator(seed))
        ((which, mask),) = [(i, a != b) for i, (a, b) in enumerate(zip(given, found, strict=True)) if (a != b).any()]
        assert int(mask.sum()) == 1
        assert found[which].stride() == given[which].stride()
        assert float(found[which][mask].abs()) == pytest.approx(times * float(given[which].abs().mean()), rel=0.02)
        assert float(found[which][mask] * given[which][mask]) >= 0
        places.add((which, int(mask.flatten().nonzero())))
    assert len(places) > 25
    assert {which for which, _ in places} == {0, 1}


@pytest.mark.parametrize("kind", ["sparse", "mostly_zero", "mostly_one"])
def test_which_elements_are_kept_has_nothing_to_do_with_their_values(kind: str):
    """A mask drawn under the seed of the inputs is made of the same numbers, and keeps the smallest."""
    source = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return 2 * x
def get_inputs():
    return [torch.rand(100, 400)]
"""
    bench = Bench(source, "full", "cpu")
    try:
        own = bench.problem.inputs(bench.seed_of(7))[1][0]
        found = bench.trial(kind, 7).tensors[0]
        kept = own[found != (1.0 if kind == "mostly_one" else 0.0)]
        assert 100 < kept.numel() < 8000
        assert 0.4 < float(kept.mean()) < 0.6
    finally:
        bench.close()
