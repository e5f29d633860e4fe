"""What the tests of the sandbox share."""

import pytest

from tools.sandbox import probe_level
from tools.types import SandboxLevel


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """Most promises are those of the `namespaces` level."""
    if probe_level() is not SandboxLevel.NAMESPACES:
        pytest.skip("this machine gives no namespaces")
