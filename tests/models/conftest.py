"""A client of the test server whose waits cost nothing, for the tests of the OpenAI client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from protocol_server import Clock, ProtocolServer

from agent.models.openai_client import OpenAIClient, Options


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(openai_server: ProtocolServer, clock: Clock) -> Callable[..., OpenAIClient]:
    def build(**options: Any) -> OpenAIClient:
        return OpenAIClient("m", base_url=openai_server.base_url, options=Options(**options), sleep=clock)

    return build
