"""The judge's own kernels against PyTorch's operators, which they stand in for."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from tools.build.helpers import helper_libraries
from tools.judge import errors, passes

pytestmark = pytest.mark.gpu
LENGTHS = [1, 2, 255, 1 << 20, (1 << 20) + 7]


@pytest.fixture(scope="module", autouse=True)
def kernels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    cache: Path = tmp_path_factory.mktemp("cache")
    library = helper_libraries(cache, "cuda").passes
    assert library is not None
    passes.load(str(library))
    yield
    passes.load(None)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.uint8, torch.float64])
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("step", [1, 3])
def test_swapping_is_what_pytorch_makes_of_it(length: int, step: int, dtype: torch.dtype) -> None:
    made = torch.Generator().manual_seed(length + step)
    drawn = [(torch.rand(length * step, generator=made) * 250).to(dtype) for _ in range(2)]
    for by in {0, length // 3, length - 1}:
        here, there = [t.clone() for t in drawn], [t.cuda() for t in drawn]
        passes.swap(here[0][::step], here[1][::step], by)
        passes.swap(there[0][::step], there[1][::step], by)
        # What lies between the strides stays.
        assert all(torch.equal(a, b.cpu()) for a, b in zip(here, there, strict=True))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("length", LENGTHS)
def test_sums_are_those_of_pytorch(length: int, dtype: torch.dtype) -> None:
    made = torch.Generator().manual_seed(length)
    target = torch.randn(length, generator=made, dtype=torch.float64)
    output = (target + 1e-3 * torch.randn(length, generator=made, dtype=torch.float64)).to(dtype)
    if length > 100:
        output[3], output[50], target[50] = float("nan"), float("inf"), float("inf")
    found = passes.sums(output.cuda(), target.cuda())
    assert found is not None
    assert found == pytest.approx(errors._sums(output, target), rel=1e-9, abs=1e-6)
