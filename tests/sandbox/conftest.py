"""What the tests of the sandbox share."""

import sys
from pathlib import Path

import pytest

from tools.sandbox import probe_level
from tools.types import SandboxLevel

# Test folders are no packages: `process_tree` is imported by its own name.
sys.path.insert(0, str(Path(__file__).parents[1] / "nursery"))


@pytest.fixture(scope="session", autouse=True)
def namespaces() -> None:
    """Most promises are those of the `namespaces` level."""
    if probe_level() is not SandboxLevel.NAMESPACES:
        pytest.skip("this machine gives no namespaces")
