"""Whose code ran: what makes a file no kernel, and what a loss of precision is said to come from."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch

from tools.judge.errors import measure
from tools.judge.limits import Floor, rounded
from tools.judge.ownership import ENOUGH_SAMPLES, Profile, bare_name, is_own, precision_finding
from tools.judge.session import Program
from tools.types import ErrorStats, PrecisionClass
from tools.worker.profile import MANY_SAMPLES

PROGRAM = Program(
    "",
    [],
    kernels=frozenset(
        {
            "_Z5chainPfi",
            "chain(float*, int)",
            "void ns::tile<float, 4>(float*)",
            "void at::native::silu_kernel<4>(float*)",
        }
    ),
)


def code(profile: Profile, required: float | None = None) -> str | None:
    finding = profile.verdict(required)
    return None if finding is None else finding.code


def sampled(own: int, library: int, calls: int = 3) -> Profile:
    return Profile.from_reply({"built_calls": calls, "samples": {"own": own, "library": library}}, PROGRAM)


def traced(*kernels: tuple[str, float, int], calls: int = 3, program: Program = PROGRAM) -> Profile:
    rows = [{"name": name, "us": us, "calls": n} for name, us, n in kernels]
    return Profile.from_reply({"built_calls": calls, "kernels": rows}, program)


def test_samples_give_a_share():
    assert sampled(30, 10).share == 0.75
    assert sampled(0, 0).share is None
    assert code(sampled(30, 10)) is None
    assert Profile.from_reply({"built_calls": 1}, PROGRAM).share is None


def test_a_library_that_is_never_called_runs_no_kernel():
    assert code(sampled(0, 400, calls=0)) == "kernel_never_runs"


def test_no_sample_of_many_in_own_code_is_a_library_call_and_none_of_few_is_luck():
    assert code(sampled(0, ENOUGH_SAMPLES)) == "library_only"
    assert code(sampled(0, ENOUGH_SAMPLES - 1)) is None


def test_a_sample_or_two_of_very_many_are_chance_and_three_are_a_kernel():
    assert code(sampled(2, MANY_SAMPLES)) == "library_only"
    assert code(sampled(2, MANY_SAMPLES - 1)) is None
    assert code(sampled(3, 10_000)) is None


def test_the_way_to_a_library_is_no_kernel():
    def found(own: int, library: int, calls: int) -> str | None:
        samples = {"own": own, "library": library, "other": 0, "calls": calls}
        return code(Profile.from_reply({"built_calls": 3, "samples": samples}, PROGRAM))

    assert found(2, 300, 5000) == "library_only"  # 0.4 us a call
    assert found(2, 300, 100) is None  # 20 us a call are work, however little beside the library's
    assert found(40, 300, 50_000) is None  # under a microsecond a call, but a good part of it
    assert found(30, 0, 90_000) is None


def test_a_share_may_be_demanded():
    assert code(sampled(30, 70), 0.5) == "own_share_too_small"
    assert code(sampled(60, 40), 0.5) is None
    assert code(sampled(0, 0), 0.5) is None


def test_kernels_on_the_device_are_told_by_their_names():
    found = traced(("chain(float*, int)", 30.0, 2), ("ampere_sgemm_128x64", 10.0, 1))
    assert found.share == 0.75
    assert (found.samples, found.own_kernels, found.has_kernels) == (3, 2, True)
    assert code(found) is None


def test_what_torch_does_to_move_and_fill_memory_counts_for_nobody():
    found = traced(
        ("chain(float*, int)", 10.0, 1),
        ("Memcpy DtoD (Device -> Device)", 90.0, 1),
        ("Memset (Device)", 50.0, 1),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::FillFunctor<float>>(int)", 9.0, 1),
    )
    assert found.share == 1.0


def test_only_library_kernels_are_a_library_call():
    assert code(traced(("ampere_sgemm_128x64", 10.0, 1))) == "library_only"
    nothing = traced(("ampere_sgemm_128x64", 10.0, 1), program=Program("", []))
    assert nothing.has_kernels is False
    assert code(nothing) == "library_only"


def test_a_kernel_that_ran_by_another_way_than_a_built_function_did_run():
    assert code(traced(("chain(float*, int)", 30.0, 2), calls=0)) is None
    assert code(traced(calls=0)) == "kernel_never_runs"


@pytest.mark.parametrize(
    ("kernel", "own"),
    [
        ("_Z5chainPfi", True),
        ("chain(float*, int)", True),
        ("void ns::tile<float, 8>(float*)", True),
        ("ns::tile", True),
        ("chained(float*, int)", False),
        ("other::tile(float*)", False),
        ("void at::native::reduce_kernel<512, 1>(int)", False),
        ("void at::native::silu_kernel<8>(float*)", False),
        ("void at::native::silu_kernel<4>(float*)", True),
    ],
)
def test_instances_of_a_template_are_its_own(kernel: str, own: bool):
    assert is_own(kernel, PROGRAM.kernels) is own


@pytest.mark.parametrize(
    ("name", "bare"),
    [
        ("void ns::k<float, 4>(float*)", "ns::k"),
        ("k(int, float const*)", "k"),
        ("void (anonymous namespace)::k<std::pair<int, int>>(int)", "_anonymous_::k"),
        ("float f<2>(float)", "f"),
        ("_Z1kPf", "_Z1kPf"),
    ],
)
def test_the_bare_name_of_a_kernel(name: str, bare: str):
    assert bare_name(name) == bare


@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"built_calls": "many"},
        {"built_calls": 1, "samples": {"own": 1}},
        {"built_calls": 1, "kernels": [{"name": "k"}]},
        {"built_calls": 1, "kernels": 3},
    ],
)
def test_a_reply_of_another_form_is_an_error_that_the_session_catches(reply: dict[str, Any]):
    with pytest.raises((KeyError, TypeError, ValueError)):
        Profile.from_reply(reply, PROGRAM)


def product(name: PrecisionClass | None, *, truncate: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
    """A matrix product in fp64, and the same with its operands shortened."""
    generator = torch.Generator().manual_seed(1)
    a, b = (torch.randn(64, 64, dtype=torch.float64, generator=generator) for _ in range(2))
    exact = a @ b.t()
    if truncate:
        a, b = ((t.float().view(torch.int32) & ~0x1FFF).view(torch.float32).double() for t in (a, b))
    elif name is not None:
        a, b = rounded(a, name), rounded(b, name)
    return a @ b.t(), exact


@pytest.mark.parametrize(
    ("name", "truncate", "expected"),
    [
        (PrecisionClass.TF32, False, "tf32_like"),
        (None, True, "tf32_truncated"),
        (PrecisionClass.BF16, False, "bf16_like"),
    ],
)
def test_short_operands_are_told_by_the_size_of_the_error(name: PrecisionClass | None, truncate: bool, expected: str):
    classes = {}
    for each in (PrecisionClass.TF32, PrecisionClass.BF16):
        error = measure(*product(each))
        classes[each] = (error.relative, error.maximum / error.peak)
    bench: Any = SimpleNamespace(floor=Floor(5e-8, 5e-8, classes, 5e-8, 64))
    error = measure(*product(name, truncate=truncate))
    stats = ErrorStats(maximum=error.maximum, rms=error.rms, bias=error.bias, scale=error.scale)
    exact = ErrorStats(maximum=0.0, rms=5e-8 * error.scale, bias=0.0, scale=error.scale)
    found: Any = SimpleNamespace(result=SimpleNamespace(error=stats, reference_error=exact))
    finding = precision_finding(bench, found)
    assert finding.code == expected
    assert finding.observed["ratio"] == pytest.approx(error.rms / (5e-8 * error.scale), abs=0.01)


def test_a_larger_error_is_reduced_precision_without_a_name():
    bench: Any = SimpleNamespace(floor=Floor(5e-8, 5e-8, {PrecisionClass.TF32: (2e-4, 2e-4)}, 5e-8, 512))
    stats = ErrorStats(maximum=0.1, rms=0.05, bias=0.0, scale=1.0)
    none = ErrorStats(maximum=0.0, rms=0.0, bias=0.0, scale=1.0)
    found: Any = SimpleNamespace(result=SimpleNamespace(error=stats, reference_error=none))
    finding = precision_finding(bench, found)
    assert finding.code == "reduced_precision"
    assert finding.observed["ratio"] is None
