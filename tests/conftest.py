"""What more than one folder of tests uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

# Test folders are no packages; their helpers are imported by their own names.
sys.path.insert(0, str(Path(__file__).parent / "models"))

from protocol_server import ProtocolServer


@pytest.fixture
def openai_server() -> Iterator[ProtocolServer]:
    """A scriptable server of the OpenAI protocol; see `protocol_server` for the answers it can give."""
    with ProtocolServer() as server:
        yield server
