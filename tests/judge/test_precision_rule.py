"""The precision rule: which of its three terms decides, what is demanded, and what an error is taken for."""

from __future__ import annotations

import dataclasses
import math

import pytest
import torch

from tools.judge.errors import Error, measure
from tools.judge.limits import (
    ACCUMULATION,
    FEW,
    FLOOR_RMS,
    REFERENCE_MAX,
    REFERENCE_RMS,
    SPECIAL_RELATIVE,
    UNIT_ROUNDOFF,
    Floor,
    classify,
    floor_limit,
    looks_reduced,
    own_limit,
    rounded,
    special_limit,
)
from tools.types import PrecisionClass

U = UNIT_ROUNDOFF[torch.float32]
TF32, FP16, BF16 = PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16
FLOAT = torch.float32


def error(
    rms: float, maximum: float | None = None, *, scale: float = 1.0, peak: float = 4.0, unsound: int = 0
) -> Error:
    return Error(4 * rms if maximum is None else maximum, rms, 0.0, scale, peak, 1000, unsound)


def floor(rms: float = 5e-8, reduction: int = 1, reference: float = 5e-8) -> Floor:
    classes = {TF32: (2e-4, 2e-4), FP16: (2e-4, 3e-4), BF16: (2e-3, 2e-3)}
    return Floor(rms, rms, classes, reference, reduction)


def test_a_candidate_may_be_a_little_less_accurate_than_the_reference():
    reference = error(1e-4)
    limit = own_limit(floor(), reference, FLOAT, None)
    assert limit.rms == pytest.approx(REFERENCE_RMS * 1e-4)
    assert limit.maximum == pytest.approx(REFERENCE_MAX * 4e-4)
    # Rounded TF32 has exactly the reference's error, truncated at least 2.6 times that.
    assert limit.admits(error(1e-4))
    assert not limit.admits(error(2.6e-4))


def test_an_accurate_reference_leaves_the_floor_of_honest_fp32():
    limit = own_limit(floor(rms=1e-7), error(1e-9), FLOAT, None)
    assert limit.rms == pytest.approx(FLOOR_RMS * 1e-7)
    assert not limit.admits(error(2e-4))


@pytest.mark.parametrize("reduction", [1, 4096, 1 << 20])
def test_a_long_sum_may_be_added_in_plain_order(reduction: int):
    """The floor of a library that adds in blocks, or by chance exactly, does not condemn a loop."""
    limit = floor_limit(floor(rms=1e-12, reduction=reduction), error(0.0), FLOAT)
    assert limit.rms == pytest.approx(U + ACCUMULATION * (1 + FEW / math.sqrt(1000)) * U * math.sqrt(reduction))
    values = torch.rand(reduction, generator=torch.Generator().manual_seed(3))
    if reduction <= 4096:
        total = torch.zeros(())
        for value in values:
            total = total + value
        found = measure(total, values.double().sum())
        assert floor_limit(floor(rms=1e-12, reduction=reduction), found, FLOAT).admits(found)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_the_rounding_of_the_outputs_own_dtype_is_always_allowed(dtype: torch.dtype):
    oracle = torch.randn(4096, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    exact = Floor(0.0, 0.0, {}, 0.0, 1)
    found = measure(oracle.to(dtype), oracle)
    assert floor_limit(exact, found, dtype).admits(found)
    assert not floor_limit(exact, found, dtype).admits(dataclasses.replace(found, rms=40 * found.rms + 1e-12))


def test_an_fp64_output_is_held_to_fp64():
    limit = floor_limit(Floor(0.0, 0.0, {}, 0.0, 100), error(0.0), torch.float64)
    assert limit.rms < 1e-14


@pytest.mark.parametrize("unsound", [0, 1])
def test_one_unsound_element_is_one_too_many(unsound: int):
    limit = own_limit(floor(), error(1e-4), FLOAT, None)
    assert limit.admits(error(0.0, unsound=unsound)) is (unsound == 0)


def test_the_maximum_counts_besides_the_rms():
    limit = own_limit(floor(), error(1e-4), FLOAT, None)
    assert not limit.admits(error(1e-6, maximum=0.1))


def test_a_demanded_class_replaces_the_references_own():
    reference = error(2e-4)
    assert own_limit(floor(), reference, FLOAT, PrecisionClass.FP32) == floor_limit(floor(), reference, FLOAT)
    allowed = own_limit(floor(), error(1e-7), FLOAT, BF16)
    assert allowed.admits(error(2e-3))
    assert not allowed.admits(error(2e-2))
    # A class that could not be measured leaves what the reference gives.
    bare = Floor(5e-8, 5e-8, {}, 2e-4, 1)
    assert own_limit(bare, reference, FLOAT, TF32) == own_limit(bare, reference, FLOAT, None)


def test_on_special_inputs_only_gross_errors_count():
    reference = error(1e-6, scale=2.0)
    own = own_limit(floor(), reference, FLOAT, None)
    special = special_limit(own, reference)
    assert special.rms == SPECIAL_RELATIVE * 2.0
    loose = own_limit(floor(), error(0.1), FLOAT, None)
    assert special_limit(loose, error(0.1)).rms == loose.rms


@pytest.mark.parametrize(
    ("relative", "dtype", "expected"),
    [
        (0.0, FLOAT, PrecisionClass.EXACT),
        (1e-17, torch.float64, PrecisionClass.FP64),
        (5e-8, FLOAT, PrecisionClass.FP32),
        (2e-4, FLOAT, TF32),
        (6e-4, FLOAT, TF32),
        (2e-3, FLOAT, BF16),
        (0.3, FLOAT, PrecisionClass.WORSE),
    ],
)
def test_an_error_is_named_after_the_finest_class_that_explains_it(
    relative: float, dtype: torch.dtype, expected: PrecisionClass
):
    assert classify(relative, floor(), dtype) is expected


def test_reduced_precision_is_everywhere_and_bounded():
    assert looks_reduced(error(2e-3, 6e-3), floor(), 0.9)
    assert not looks_reduced(error(2e-3, 6e-3), floor(), 0.001)
    assert not looks_reduced(error(2e-3, 1.0), floor(), 0.9)
    assert not looks_reduced(error(0.1), floor(), 0.9)
    assert not looks_reduced(error(2e-3, unsound=1), floor(), 0.9)
    assert not looks_reduced(error(2e-3, scale=0.0), floor(), 0.9)
    assert not looks_reduced(error(2e-3), Floor(1e-7, 1e-7, {}, 1e-7, 1), 0.9)


def test_a_reference_in_tf32_is_told_from_one_in_fp32():
    assert floor().reference_is_fp32
    assert not floor(reference=2e-4).reference_is_fp32


@pytest.mark.parametrize(("name", "bits"), [(TF32, 11), (FP16, 11), (BF16, 8)])
def test_rounding_to_a_class_keeps_its_bits_and_its_dtype(name: PrecisionClass, bits: int):
    values = torch.rand(5000, dtype=torch.float64, generator=torch.Generator().manual_seed(5)) + 1.0
    short = rounded(values, name)
    assert short.dtype is torch.float64
    scaled = short * 2.0 ** (bits - 1)
    assert torch.equal(scaled, scaled.round())
    assert float((short - values).abs().max()) <= 2.0**-bits
    assert float((short - values).abs().max()) > 2.0 ** -(bits + 1)
    # What a tensor core rounds is rounded to the nearest, without a bias.
    assert abs(float((short - values).mean())) < 2.0**-bits / 20
    integers = torch.arange(5000)
    assert rounded(integers, name) is integers


def test_rounding_to_tf32_keeps_the_range_of_fp32():
    assert float(rounded(torch.tensor(3e38, dtype=torch.float64), TF32)) == pytest.approx(3e38, rel=1e-3)
    assert float(rounded(torch.tensor(1e-30, dtype=torch.float64), TF32)) == pytest.approx(1e-30, rel=1e-3)
