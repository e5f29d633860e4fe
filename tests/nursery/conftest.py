"""One nursery per level for the tests of this folder."""

from collections.abc import Iterator

import pytest

from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import SandboxLevel


@pytest.fixture(scope="session", params=list(SandboxLevel), ids=str)
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    if request.param is SandboxLevel.NAMESPACES and probe_level() is not SandboxLevel.NAMESPACES:
        pytest.skip("this machine gives no namespaces")
    with Nursery.start(request.param) as started:
        yield started
