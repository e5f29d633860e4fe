"""Inputs that lie in shared memory under a pad: nothing of them can be read without it."""

from __future__ import annotations

import pytest
import torch

from tools.judge.slots import MOST_IN_ROW, end, input_slots
from tools.worker.arena import CANARY, Arena, guards, tensor_at
from tools.worker.masking import unmasked, write_masked, write_pad


def inputs() -> list[torch.Tensor]:
    """Of all sizes of element, and of sizes that no word ends with."""
    return [
        torch.randn(5, 7),
        torch.randint(0, 2, (13,)).bool(),
        torch.randn(3, 4, dtype=torch.complex128),
        torch.randn(6, 5).t(),
        torch.empty(0, 3),
        torch.tensor(2.5, dtype=torch.float16),
        torch.randint(-9, 9, (11,), dtype=torch.int8),
        torch.randn(2, 3)[:, :1].expand(2, 3),
    ]


@pytest.fixture
def arena() -> Arena:
    slots, _ = input_slots(inputs(), 1, "cpu")
    made = Arena.create("cpu", end(slots))
    made.bytes.fill_(CANARY)
    return made


def test_inputs_come_back_as_they_were_once_the_pad_is_there(arena: Arena):
    slots, _ = input_slots(inputs(), 1, "cpu")
    draws = [inputs() for _ in range(3)]
    pad = None
    for i, draw in enumerate(draws):
        pad = write_masked(arena, slots[i + 1], list(draw), pad)
    assert pad is not None
    write_pad(arena, slots[0], pad)
    for i, draw in enumerate(draws):
        for tensor, place, key in zip(draw, slots[i + 1], slots[0], strict=True):
            found = unmasked(arena, place, key)
            assert torch.equal(found, tensor)
            assert found.dtype == tensor.dtype
            assert list(found.stride()) == place["stride"]


def test_without_the_pad_nothing_can_be_told_from_noise(arena: Arena):
    slots, _ = input_slots([torch.zeros(100_000)], 1, "cpu")
    wide = Arena.create("cpu", end(slots))
    pad = write_masked(wide, slots[1], [torch.zeros(100_000)], None)
    stored = wide.bytes[slots[1][0]["offset"] :][:400_000]
    bits = torch.stack([(stored >> k) & 1 for k in range(8)]).double().mean(dim=1)
    assert bool(((bits - 0.5).abs() < 0.01).all())
    again = write_masked(wide, slots[1], [torch.zeros(100_000)], None)
    assert not torch.equal(pad[0], again[0])


def test_what_lies_behind_a_guard_is_left_alone(arena: Arena):
    slots, _ = input_slots(inputs(), 1, "cpu")
    write_masked(arena, slots[1], inputs(), None)
    for place in slots[1]:
        before, behind = guards(arena, place)
        assert bool((before == CANARY).all())
        assert bool((behind[8:] == CANARY).all())  # the last word may reach in


def test_the_tensors_are_let_go_of(arena: Arena):
    slots, _ = input_slots(inputs(), 1, "cpu")
    given = inputs()
    write_masked(arena, slots[1], given, None)
    assert given == []


@pytest.mark.parametrize(
    ("numbers", "output_bytes", "calls"),
    [(16, 1, MOST_IN_ROW), (4 << 20, 1, 3), (16, 30 << 20, 2), (200 << 20, 1, 1), (16, 1 << 40, 1)],
)
def test_a_row_has_as_many_slots_as_there_is_room_for(numbers: int, output_bytes: int, calls: int):
    slots, one = input_slots([torch.empty(numbers, dtype=torch.float32, device="meta")], output_bytes, "cpu")
    assert len(slots) == calls + 1
    assert one > 4 * numbers
    assert {place["bytes"] for slot in slots for place in slot} == {4 * numbers}


def test_slots_are_laid_out_alike_and_lie_apart(arena: Arena):
    slots, one = input_slots(inputs(), 1, "cpu")
    first = [place["offset"] for place in slots[0]]
    for i, slot in enumerate(slots):
        shift = slot[0]["offset"] - first[0]
        assert [place["offset"] - shift for place in slot] == first
        assert shift >= i * (one - 4096 - 512)
    for i, slot in enumerate(slots):
        for place in slot:
            tensor_at(arena, place).fill_(i % 2)
    assert all(bool((tensor_at(arena, p) == i % 2).all()) for i, slot in enumerate(slots) for p in slot)
