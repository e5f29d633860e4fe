"""What the tests of builds share: one nursery, one cache, and sources that compile without torch's headers."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tools.build import Builder, ToolchainError, find_toolchain
from tools.build.fast import prepare
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import BuildResult, SandboxLevel


@pytest.fixture(scope="session")
def level() -> SandboxLevel:
    return probe_level()


@pytest.fixture(scope="session")
def nursery(level: SandboxLevel) -> Iterator[Nursery]:
    with Nursery.start(level) as started:
        yield started


@pytest.fixture(scope="session")
def cache_dir(tmp_path_factory: pytest.TempPathFactory, kept_builds: Path) -> Path:
    """No build is in it. The bridge is, which all processes of the session have compiled once, together."""
    folder = tmp_path_factory.mktemp("builds")
    kit = prepare(find_toolchain(cuda=False), kept_builds)
    if kit is not None:
        shutil.copytree(kit.folder, folder / "fast" / Path(kit.folder).name, symlinks=True)
    return folder


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
