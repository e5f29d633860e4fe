"""Copies of inputs: the same values and strides, elsewhere, and not always in the same place."""

from __future__ import annotations

import pytest
import torch

from tools.worker.placing import HELD, HELD_BYTES, Ring, late, placed
from tools.worker.stopwatch import Stopwatch

VIEWS = {
    "plain": torch.arange(12.0).reshape(3, 4),
    "transposed": torch.arange(12.0).reshape(3, 4).t(),
    "with gaps": torch.arange(40.0).reshape(4, 10)[:, 1:9:3],
    "expanded": torch.arange(4.0).expand(3, 4),
    "windows": torch.arange(9).as_strided((4, 6), (1, 1)),
    "complex": torch.randn(3, dtype=torch.complex64),
    "bool": torch.tensor([True, False, True]),
    "number": torch.tensor(7, dtype=torch.int64),
    "empty": torch.empty(0, 3),
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("how", ["placed", "late"])
def test_a_copy_has_the_values_and_strides(name: str, how: str):
    view = VIEWS[name]
    (copy,) = late([view], Stopwatch("cpu")) if how == "late" else [placed(view)]
    assert torch.equal(copy, view)
    assert (copy.stride(), copy.dtype, copy.shape) == (view.stride(), view.dtype, view.shape)
    assert view.numel() == 0 or copy.data_ptr() != view.data_ptr()


def test_few_sets_are_held_and_no_large_ones(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(HELD_BYTES, "cpu", 64)
    ring = Ring("cpu")
    for size in [16] * 20 + [17]:
        ring.hold([torch.zeros(size)])
    assert [t.numel() for (t,) in ring._held] == [16] * HELD
