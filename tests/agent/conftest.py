from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_cases import Agent


@pytest.fixture(scope="session")
def build_cache(kept_builds: Path) -> Path:
    return kept_builds


@pytest.fixture
def agent(tmp_path: Path, build_cache: Path) -> Agent:
    return Agent(tmp_path, build_cache)
