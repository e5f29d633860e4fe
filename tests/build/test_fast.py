"""The fast route: modules that it builds behave in Python as the stock route's would."""

from __future__ import annotations

import importlib.machinery
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from tools.build.calls import BoundFunction, BuildCall, SourcePart, Unit
from tools.build.commands import Commands
from tools.build.fast import FastKit, compile_fast, prepare
from tools.build.toolchain import Toolchain, find_toolchain
from tools.sandbox import probe_level

Build = Callable[..., ModuleType]


@pytest.fixture(scope="session")
def toolchain() -> Toolchain:
    return find_toolchain(cuda=False)


@pytest.fixture(scope="session")
def kit(toolchain: Toolchain) -> FastKit:
    kit = prepare(toolchain, Path.home() / ".cache" / "kernel-agent" / "tests")
    assert kit is not None
    return kit


@pytest.fixture
def build(toolchain: Toolchain, kit: FastKit, tmp_path: Path) -> Build:
    def run(source: str, functions: list[str] | None, name: str = "fast_test", flags: list[str] | None = None) -> Any:
        call = BuildCall(
            index=0,
            name=name,
            call="test",
            units=[
                Unit(
                    filename="main.cpp",
                    language="cpp",
                    implicit=["torch/extension.h"],
                    parts=[SourcePart(label="cpp_sources", text=source)],
                )
            ],
            bindings=None if functions is None else [BoundFunction(name=f, doc=f) for f in functions],
            cflags=flags or [],
        )
        outcome = compile_fast(call, toolchain, kit, Commands(tmp_path, 120, probe_level()), "sm_90a")
        assert outcome.ok, outcome.log
        return load(name, tmp_path / str(outcome.library))

    return run


def load(name: str, path: Path) -> ModuleType:
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


RELU = """
torch::Tensor relu(torch::Tensor x, double slope) {
  TORCH_CHECK(x.dtype() == torch::kFloat32, "want float32, not ", x.dtype(), " of shape ", x.sizes());
  auto in = x.contiguous();
  auto out = torch::empty_like(in);
  const float* p = in.data_ptr<float>();
  float* q = out.data_ptr<float>();
  for (int64_t i = 0; i < in.numel(); ++i) q[i] = p[i] > 0 ? p[i] : slope * p[i];
  return out;
}
"""


def test_tensors_and_numbers_go_in_and_come_back(build: Build) -> None:
    module = build(RELU, ["relu"])
    x = torch.randn(3, 5).t()
    assert torch.equal(module.relu(x, 0.5), torch.nn.functional.leaky_relu(x, 0.5))
    assert torch.equal(module.relu(torch.nn.Parameter(x), 0), x.relu())


def test_errors_are_those_of_torch_and_pybind(build: Build) -> None:
    module = build(RELU, ["relu"])
    with pytest.raises(RuntimeError, match=r"^want float32, not double of shape \[2, 3\]$"):
        module.relu(torch.ones(2, 3, dtype=torch.float64), 0.0)
    with pytest.raises(TypeError, match=r"relu\(\): incompatible function arguments"):
        module.relu(torch.ones(2), "x")
    with pytest.raises(TypeError, match=r"arg0: torch\.Tensor, arg1: float"):
        module.relu(torch.ones(2))
