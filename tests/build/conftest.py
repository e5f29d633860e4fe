"""What the tests of builds share: one nursery, one cache, and sources that compile without torch's headers."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.build import Builder, ToolchainError, find_toolchain
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import BuildResult, SandboxLevel

# pybind11 alone compiles in three seconds, torch/extension.h in twenty.
LIGHT = """
import torch
from torch.utils.cpp_extension import load_inline

source = r'''
#include <pybind11/pybind11.h>
{code}
'''
ext = load_inline(name="{name}", cpp_sources=source, functions=["f"], no_implicit_headers=True,
                  with_pytorch_error_handling=False{more})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.f(x)
"""


def light(code: str, more: str = "") -> str:
    """A candidate whose C++ source is `code`, which defines `f`; `more` are further arguments of the call.

    Its module has a name of its own: pybind11 gives back the first module of a name that a process loaded.
    """
    name = f"light_{hashlib.sha256(code.encode()).hexdigest()[:8]}"
    return LIGHT.replace("{name}", name).replace("{code}", code).replace("{more}", f", {more}" if more else "")


@pytest.fixture(scope="session")
def level() -> SandboxLevel:
    return probe_level()


@pytest.fixture(scope="session")
def nursery(level: SandboxLevel) -> Iterator[Nursery]:
    with Nursery.start(level) as started:
        yield started


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("builds")


@pytest.fixture(scope="session")
def builder(nursery: Nursery, level: SandboxLevel, cache_dir: Path) -> Builder:
    return Builder(nursery=nursery, device="cpu", level=level, cache_dir=cache_dir)


@pytest.fixture(scope="session")
def cuda_builder(nursery: Nursery, level: SandboxLevel, cache_dir: Path) -> Builder:
    try:
        find_toolchain(cuda=True)
    except ToolchainError as error:
        pytest.skip(str(error))
    return Builder(nursery=nursery, device="cuda", level=level, cache_dir=cache_dir, arch="sm_90a")


@pytest.fixture
def build(builder: Builder, tmp_path: Path) -> Callable[..., BuildResult]:
    """Builds a candidate's text for the CPU."""

    def run(source: str, **options: object) -> BuildResult:
        return builder.build(source, init_args=[], log_dir=tmp_path, **options)  # type: ignore[arg-type]

    return run


def load(result: BuildResult, index: int = 0):
    """The built module, imported as a worker imports it."""
    import torch  # noqa: F401 - brings the libraries that a module links to

    module = result.modules[index]
    loader = importlib.machinery.ExtensionFileLoader(module.name, module.library)
    spec = importlib.util.spec_from_file_location(module.name, module.library, loader=loader)
    assert spec is not None
    loaded = importlib.util.module_from_spec(spec)
    loader.exec_module(loaded)
    return loaded
