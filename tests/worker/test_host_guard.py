"""The guard bands and the poison of host memory, with real tensors and real overruns in a preloaded child."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.channel import receive_json
from tools.nursery import Nursery
from tools.types import SandboxLevel
from tools.worker.guard import GuardControl, guard_library

WAIT = 60


@pytest.fixture(scope="module")
def nursery(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nursery]:
    library = guard_library(tmp_path_factory.mktemp("cache"))
    if library is None:
        pytest.skip("needs a C compiler")
    with Nursery.start(SandboxLevel.LIMITS, preload=library) as started:
        yield started


def observe(nursery: Nursery, what: str) -> Any:
    with nursery.spawn("tests.worker.host_guard_targets:observe", {"what": what}, sandboxed=True) as child:
        try:
            return receive_json(child.sock, timeout=WAIT)
        finally:
            status = child.wait(WAIT)
            assert status is not None
            assert status.ok, status


def test_it_is_there(nursery: Nursery) -> None:
    assert observe(nursery, "available") is True


def test_it_is_a_no_op_where_it_is_not_preloaded() -> None:
    control = GuardControl()
    assert not control.available
    control.enable(1)
    assert control.damage() is None
    control.disable()


@pytest.mark.parametrize(
    ("what", "report"),
    [
        ("honest", [0, 0, 0, 0]),
        ("overrun_by_one_float", [1, 4004, 4004, 0]),
        ("overrun_by_one_byte_of_five", [1, 5, 5, 0]),
        ("underrun", [1, 4000, -8, 0]),
        ("overrun_of_a_freed_block", [1, 400, 400, 0]),
        ("write_after_free", [1, 400, 40, 1]),
        ("two_damaged", [2, 400, 400, 0]),
        ("new_count_after_enabling_again", [0, 0, 0, 0]),
        ("off_and_on", [0, 0, 0, 0]),
        ("threads", [0, 0, 0, 0]),
    ],
)
def test_what_happened_is_what_is_reported(nursery: Nursery, what: str, report: list[int]) -> None:
    assert observe(nursery, what) == report


def test_unwritten_memory_is_poisoned(nursery: Nursery) -> None:
    nan, huge = [True, False], [False, True]
    # fp32, fp64, fp16, bf16: 0xFF bytes are NaN in each; 0x7F bytes are huge, and NaN in fp16.
    assert observe(nursery, "poison") == [nan, nan, nan, nan, huge, huge, nan, huge]


def test_written_memory_is_not(nursery: Nursery) -> None:
    assert observe(nursery, "no_poison_of_what_is_written") is True


def test_the_other_functions_of_the_c_library_agree(nursery: Nursery) -> None:
    assert observe(nursery, "realloc") == [100, True, 0, 0, 0, 0, 0]


def test_a_size_that_cannot_be_had_is_refused_as_ever(nursery: Nursery) -> None:
    einval, enomem = 22, 12
    assert observe(nursery, "impossible_sizes") == [einval, enomem, enomem, 0, 0, 0, 0]


def test_as_the_worker_uses_it(nursery: Nursery) -> None:
    assert observe(nursery, "damage_as_it_comes") == [[0, 0, 0], [1, 40, 40], [1, 40, 40]]


def test_the_library_is_built_once(tmp_path: Path) -> None:
    first = guard_library(tmp_path)
    if first is None:
        assert not (shutil.which("cc") or shutil.which("gcc") or shutil.which("clang"))
        return
    built = first.stat().st_mtime_ns
    assert guard_library(tmp_path) == first
    assert first.stat().st_mtime_ns == built
    assert list(tmp_path.iterdir()) == [first]


def test_without_a_compiler_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert guard_library(tmp_path / "cache") is None
