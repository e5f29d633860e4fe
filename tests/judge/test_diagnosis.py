"""What a wrong output is said to look like: one made-up mistake for each finding that the diagnosis can give."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from tools.judge import diagnose as diagnosis
from tools.judge.diagnose import diagnose
from tools.types import Finding

LIMIT = 1e-5
Mistake = Callable[[torch.Tensor], torch.Tensor]


def drawn(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(11))


ORACLE = drawn(8, 6, 40, 40)


def found(mistake: Mistake, oracle: torch.Tensor = ORACLE, inputs: list[torch.Tensor] | None = None) -> list[Finding]:
    """The findings on the oracle's own values in fp32 after a mistake has been made in them."""
    return diagnose(mistake(oracle.float().clone()), oracle, LIMIT, inputs or [])


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def adding(*where: object, by: float = 1.0) -> Mistake:
    def mistake(t: torch.Tensor) -> torch.Tensor:
        t[where] += by  # pyright: ignore[reportArgumentType]
        return t

    return mistake


def putting(value: float, *where: object) -> Mistake:
    def mistake(t: torch.Tensor) -> torch.Tensor:
        t[where] = value  # pyright: ignore[reportArgumentType]
        return t

    return mistake


ALL = slice(None)
NOISE = drawn(8, 6, 40, 40).flip(0).float()


@pytest.mark.parametrize(
    ("mistake", "expected"),
    [
        (lambda t: t + NOISE, ["everywhere"]),
        (lambda t: t * 0, ["all_zeros", "everywhere"]),
        (lambda t: t * 0 + 2.5, ["constant_output", "everywhere"]),
        (lambda t: -t, ["sign_flipped", "everywhere"]),
        (lambda t: t + 0.25, ["constant_offset", "everywhere"]),
        (lambda t: t * 0.125, ["constant_factor", "everywhere"]),
        (lambda t: t.transpose(-1, -2).contiguous(), ["swapped_axes", "everywhere"]),
        (adding(ALL, ALL, ALL, slice(32, None)), ["tile_tail"]),
        (adding(ALL, ALL, slice(32, None)), ["tile_tail"]),
        (adding(ALL, 4), ["one_channel"]),
        (adding(ALL, ALL, ALL, slice(3, None, 8)), ["stripe"]),
        (adding(ALL, ALL, 0), ["one_channel"]),
        (adding(5, 3, 17, 20), ["one_channel"]),
        (putting(float("nan"), ALL, ALL, ALL, slice(32, None)), ["nan_output", "tile_tail"]),
        (putting(float("inf"), ALL, 4), ["inf_output", "one_channel"]),
        (putting(float("nan")), ["nan_output", "everywhere"]),
    ],
)
def test_each_mistake_is_named(mistake: Mistake, expected: list[str]):
    assert codes(found(mistake)) == expected


def test_both_edges_of_an_axis_are_its_border():
    assert codes(found(adding(ALL, ALL, [0, -1]))) == ["border"]
    (place,) = found(adding(ALL, ALL, ALL, [0, 1, -1]))
    assert place.code == "border"
    assert "axis 3 (size 40)" in place.summary


def test_where_it_starts_is_told():
    (tail,) = found(adding(ALL, ALL, ALL, slice(32, None)))
    assert (tail.observed["axis"], tail.observed["correct_up_to"], tail.observed["size"]) == (3, 32, 40)
    (channel,) = found(adding(ALL, 4))
    assert (channel.observed["axis"], channel.observed["first"], channel.observed["density"]) == (1, 4, 1.0)
    (stripe,) = found(adding(ALL, ALL, ALL, slice(3, None, 8)))
    assert (stripe.observed["first"], stripe.observed["period"]) == (3, 8)


def test_the_end_of_a_flat_loop_is_a_tail():
    """A grid that is too small leaves the last elements of the whole tensor, which no axis shows."""
    left = ORACLE.numel() // 3

    def mistake(t: torch.Tensor) -> torch.Tensor:
        t.view(-1)[-left:] += 1.0
        return t

    (tail,) = found(mistake)
    assert (tail.code, tail.observed["axis"], tail.observed["first"]) == ("tile_tail", -1, ORACLE.numel() - left)


def test_few_and_scattered_elements():
    many = torch.rand(ORACLE.shape, generator=torch.Generator().manual_seed(4)) < 0.2
    assert codes(found(lambda t: t + many)) == ["scattered"]
    few = torch.zeros(ORACLE.shape)
    for index in ((2, 2, 10, 11), (5, 3, 20, 22), (3, 2, 15, 9), (5, 2, 7, 30)):
        few[index] = 1.0
    assert codes(found(lambda t: t + few)) == ["few_elements"]


def test_an_input_handed_back_is_told():
    given = drawn(8, 6, 40, 40).flip(1).float()
    assert codes(found(lambda _: given.clone(), inputs=[torch.zeros(3), given])) == [
        "passes_input_through",
        "everywhere",
    ]


def test_the_facts_are_those_of_the_tensor():
    offset = found(lambda t: t + 0.25)[0]
    assert offset.observed["offset"] == pytest.approx(0.25, rel=1e-4)
    factor = found(lambda t: t * 0.125)[0]
    assert factor.observed["factor"] == pytest.approx(0.125, rel=1e-4)
    (channel,) = found(adding(ALL, 4))
    assert channel.observed["wrong"] == ORACLE.numel() // 6
    assert channel.observed["share_wrong"] == pytest.approx(1 / 6, abs=1e-6)
    nan = found(putting(float("nan"), 2))[0]
    assert nan.observed["nan"] == ORACLE.numel() // 8


def test_noise_within_the_limit_is_no_finding():
    assert found(lambda t: t + 0.1 * LIMIT * NOISE.sign()) == []
    assert diagnose(torch.empty(0, 4), torch.empty(0, 4, dtype=torch.float64), LIMIT, []) == []


def test_a_scalar_is_diagnosed_too():
    oracle = torch.tensor(2.0, dtype=torch.float64)
    assert codes(diagnose(torch.tensor(1.0), oracle, LIMIT, [])) == ["everywhere"]
    assert codes(diagnose(torch.tensor(float("nan")), oracle, LIMIT, [])) == ["nan_output", "everywhere"]


@pytest.mark.parametrize("dtype", [torch.int64, torch.uint8, torch.bool, torch.float16, torch.bfloat16])
def test_every_dtype_is_diagnosed(dtype: torch.dtype):
    oracle = (torch.arange(30 * 16).reshape(30, 16) % 2).to(dtype)
    output = oracle.clone()
    output[:, 5] = 1 - output[:, 5].to(torch.uint8)
    found = diagnose(output, oracle if not dtype.is_floating_point else oracle.double(), 0.0, [])
    assert codes(found) == ["one_channel"]


def test_a_large_tensor_is_looked_at_in_its_leading_part(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(diagnosis, "SAMPLE", 5 * 6 * 40 * 40)
    (channel,) = found(adding(ALL, 4))
    assert (channel.code, channel.observed["looked_at"]) == ("one_channel", 5 * 6 * 40 * 40)
