"""Candidates of many styles: the fast route builds them, and what they compute is what the stock route's compute."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from fast_corpus import calls_of, compiled, results, sources

from tools.build.toolchain import ToolchainError, find_toolchain


def assert_same(fast: Any, stock: Any) -> None:
    """Equal in structure, types and text; tensors also in dtype, strides and history, and nearly so in value."""
    assert type(fast) is type(stock), (fast, stock)
    if isinstance(fast, torch.Tensor):
        torch.testing.assert_close(fast, stock, rtol=1e-5, atol=1e-6, equal_nan=True, check_stride=True)
        assert fast.requires_grad == stock.requires_grad
    elif isinstance(fast, (list, tuple)):
        assert len(fast) == len(stock)
        for a, b in zip(fast, stock, strict=True):
            assert_same(a, b)
    else:
        assert fast == stock


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", sources("cpp"), ids=lambda p: p.stem)
def test_cpp_candidates_agree_on_both_routes(path: Path) -> None:
    assert_same(results(path, "fast", "cpu"), results(path, "stock", "cpu"))


@pytest.mark.nvcc
@pytest.mark.timeout(600)
@pytest.mark.parametrize("path", sources("cuda"), ids=lambda p: p.stem)
def test_cuda_candidates_compile(path: Path) -> None:
    try:
        toolchain = find_toolchain(cuda=True)
    except ToolchainError as error:
        pytest.skip(str(error))
    for call in calls_of(path, "cuda"):
        outcome, _ = compiled(call, "fast", toolchain)
        assert outcome.ok, outcome.log


@pytest.mark.gpu
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", sources("cuda"), ids=lambda p: p.stem)
def test_cuda_candidates_agree_on_both_routes(path: Path) -> None:
    major, minor = torch.cuda.get_device_capability()
    arch = f"sm_{major}{minor}" + ("a" if major >= 9 else "")
    assert_same(results(path, "fast", "cuda", arch), results(path, "stock", "cuda", arch))
