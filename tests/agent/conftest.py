from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_cases import Agent


@pytest.fixture(scope="session")
def build_cache(request: pytest.FixtureRequest) -> Path:
    """Kept between sessions, as a user's cache is: what these tests compile has been compiled before.

    Building itself is tested elsewhere, from nothing. `pytest --cache-clear` empties it.
    """
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    return cache.mkdir("agent-builds")


@pytest.fixture
def agent(tmp_path: Path, build_cache: Path) -> Agent:
    return Agent(tmp_path, build_cache)
