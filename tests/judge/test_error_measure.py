"""Errors against the oracle: what is counted, on every dtype, however many slices a tensor is looked at in."""

from __future__ import annotations

import math

import pytest
import torch

from tools.judge import errors
from tools.judge.errors import identical, measure, worst_element, wrong_elements

NAN, INF = float("nan"), float("inf")


@pytest.fixture(params=[1 << 25, 7], ids=["one slice", "many slices"], autouse=True)
def slice_size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything must come out the same when a tensor is longer than a slice."""
    monkeypatch.setattr(errors, "SLICE", request.param)


def test_maximum_rms_bias_scale_and_peak_by_hand():
    oracle = torch.tensor([[3.0, -4.0], [0.0, 0.0]], dtype=torch.float64)
    output = torch.tensor([[3.5, -4.0], [0.0, -1.0]])
    found = measure(output, oracle)
    assert found.maximum == 1.0
    assert found.rms == pytest.approx(math.sqrt((0.25 + 1.0) / 4))
    assert found.bias == pytest.approx((0.5 - 1.0) / 4)
    assert found.scale == pytest.approx(math.sqrt(25 / 4))
    assert (found.peak, found.elements, found.unsound) == (4.0, 4, 0)
    assert found.relative == pytest.approx(found.rms / found.scale)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_error_of_a_rounded_tensor_is_that_of_its_dtype(dtype: torch.dtype):
    oracle = torch.linspace(1, 2, 1001, dtype=torch.float64)
    found = measure(oracle.to(dtype), oracle)
    unit = torch.finfo(dtype).eps / 2
    assert found.maximum <= unit * 2
    assert (found.maximum > unit / 4) is (dtype is not torch.float64)
    assert found.unsound == 0


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64, torch.bool])
def test_integers_and_bools_are_compared_by_value(dtype: torch.dtype):
    oracle = torch.tensor([0, 1, 1, 0, 1, 0, 0, 1, 1]).to(dtype)
    output = oracle.clone()
    assert measure(output, oracle).rms == 0
    output[4] = 0
    found = measure(output, oracle)
    assert found.maximum == 1.0
    assert wrong_elements(output, oracle, 0.0) == 1
    assert worst_element(output, oracle) == [4]


@pytest.mark.parametrize(
    ("value", "truth", "unsound"),
    [
        (NAN, NAN, 0),
        (INF, INF, 0),
        (-INF, -INF, 0),
        (INF, -INF, 1),
        (NAN, INF, 1),
        (NAN, 1.0, 1),
        (INF, 1.0, 1),
        (1.0, NAN, 1),
        (1.0, INF, 1),
    ],
)
def test_what_is_not_finite_has_to_be_the_same(value: float, truth: float, unsound: int):
    output, oracle = torch.ones(10), torch.ones(10, dtype=torch.float64)
    output[8], oracle[8] = value, truth
    found = measure(output, oracle)
    assert found.unsound == unsound
    # It takes part in no sum, and hides nothing else.
    assert (found.rms, found.maximum, found.peak) == (0.0, 0.0, 1.0)
    assert wrong_elements(output, oracle, 1e9) == unsound
    if unsound:
        assert worst_element(output, oracle) == [8]


def test_the_worst_element_is_found_by_its_index_in_every_dimension():
    oracle = torch.zeros(2, 3, 5, dtype=torch.float64)
    output = torch.zeros(2, 3, 5)
    output[0, 1, 1], output[1, 2, 3] = 0.5, -0.75
    assert worst_element(output, oracle) == [1, 2, 3]
    output[0, 2, 4] = NAN
    assert worst_element(output, oracle) == [0, 2, 4]
    assert worst_element(torch.tensor(2.0), torch.tensor(1.0, dtype=torch.float64)) == []


def test_strides_do_not_matter():
    oracle = torch.randn(6, 8, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    output = oracle.float()
    assert measure(output.t(), oracle.t()).rms == pytest.approx(measure(output, oracle).rms)
    assert identical(output.t(), output.t().contiguous())


def test_an_empty_output_has_no_error():
    found = measure(torch.empty(0, 3), torch.empty(0, 3, dtype=torch.float64))
    assert (found.maximum, found.rms, found.elements, found.unsound) == (0.0, 0.0, 0, 0)


def test_an_error_where_the_oracle_is_zero_is_infinite_relative_to_it():
    zeros = torch.zeros(4, dtype=torch.float64)
    assert measure(torch.zeros(4), zeros).relative == 0.0
    assert measure(torch.full((4,), 1e-30), zeros).relative == INF


def test_identical_means_the_same_bits():
    a = torch.randn(100, generator=torch.Generator().manual_seed(1))
    b = a.clone()
    assert identical(a, b)
    b[99] = torch.nextafter(b[99], torch.tensor(9.0))
    assert not identical(a, b)
    assert not identical(torch.tensor([0.0]), torch.tensor([-0.0]))
    assert identical(torch.tensor([NAN]), torch.tensor([NAN]))
    assert not identical(torch.zeros(4), torch.zeros(2, 2))
    assert not identical(torch.zeros(4), torch.zeros(4, dtype=torch.int32))
