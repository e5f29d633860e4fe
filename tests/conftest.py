"""What more than one folder of tests uses."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Idle OpenMP threads sleep, as they do in all that the nursery starts: where tests share the cores, one that spins
# keeps the others from running. It is read when torch is loaded, which is later.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Test folders are no packages; their helpers are imported by their own names.
sys.path.insert(0, str(Path(__file__).parent / "models"))

from protocol_server import ProtocolServer

from agent.machine import resolve_device

# Folders whose tests start whole runs, longest first.
LONG = ("agent", "toolbox", "cases", "build")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are skipped where none can be used. With several workers a file stays on one of them, since
    its tests share what is slow to start, unless it has groups of its own; and long files come first, lest one is left
    for a single worker in the end."""
    for item in items:
        if item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group(item.path.relative_to(Path(__file__).parent).as_posix()))
    if hasattr(config, "workerinput"):
        slow = {item.path for item in items if item.get_closest_marker("slow")}
        items.sort(key=lambda item: (item.path not in slow, _rank(item.path)))
    if resolve_device("auto") == "cpu":
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


def _rank(path: Path) -> int:
    folder = path.relative_to(Path(__file__).parent).parts[0]
    return LONG.index(folder) if folder in LONG else len(LONG)


@pytest.fixture(scope="session")
def kept_builds(request: pytest.FixtureRequest) -> Path:
    """Kept between sessions, as a user's cache is: what tests compile on their way has been compiled before.

    Building itself is tested elsewhere, from nothing. `pytest --cache-clear` empties it.
    """
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    return cache.mkdir("agent-builds")


@pytest.fixture
def openai_server() -> Iterator[ProtocolServer]:
    """A scriptable server of the OpenAI protocol; see `protocol_server` for the answers it can give."""
    with ProtocolServer() as server:
        yield server
