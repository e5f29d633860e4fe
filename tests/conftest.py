"""What more than one folder of tests uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Test folders are no packages; their helpers are imported by their own names.
sys.path.insert(0, str(Path(__file__).parent / "models"))

from protocol_server import ProtocolServer

from agent.machine import resolve_device


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests marked `gpu` are skipped where none can be used."""
    if resolve_device("auto") == "cpu":
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="needs a CUDA device"))


@pytest.fixture
def openai_server() -> Iterator[ProtocolServer]:
    """A scriptable server of the OpenAI protocol; see `protocol_server` for the answers it can give."""
    with ProtocolServer() as server:
        yield server
