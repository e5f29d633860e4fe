"""The limits on memory, time, files and descriptors, each passed on purpose."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from test_promises import attempt

from tools.nursery import Limits, Nursery
from tools.sandbox import isolation
from tools.sandbox.policy import Policy
from tools.types import SandboxLevel

_MIB = 1 << 20


@pytest.fixture(scope="module", params=list(SandboxLevel), ids=str)
def nursery(request: pytest.FixtureRequest) -> Iterator[Nursery]:
    with Nursery.start(request.param) as started:
        yield started


@pytest.mark.parametrize("what", ["allocate", "allocate_shared", "fill_memfd"])
def test_memory_of_each_kind(nursery: Nursery, what: str) -> None:
    limits = Limits(seconds=60, memory_bytes=128 * _MIB)
    _, _, status = attempt(nursery, what, limits, bytes=256 * _MIB)
    assert status.out_of_memory
    assert not status.timed_out
    assert status.signal == 9
    assert status.peak_memory > 128 * _MIB


def test_memory_within_the_limit_is_nobodys_business(nursery: Nursery) -> None:
    limits = Limits(seconds=60, memory_bytes=256 * _MIB)
    succeeded, _, status = attempt(nursery, "allocate", limits, bytes=128 * _MIB, hold=0.3)
    assert succeeded
    assert status.ok
    # What it has from the nursery (torch, some 150 MiB) does not count.
    assert 128 * _MIB <= status.peak_memory < 192 * _MIB


def test_memory_in_a_private_file_system(nursery: Nursery) -> None:
    if nursery.level is not SandboxLevel.NAMESPACES:
        pytest.skip("/tmp is the machine's own")
    limits = Limits(seconds=60, memory_bytes=64 * _MIB, file_bytes=128 * _MIB)
    _, _, status = attempt(nursery, "fill", limits, path="/tmp", bytes=100 * _MIB, hold=30)
    assert status.out_of_memory


def test_disk_in_a_private_file_system(nursery: Nursery) -> None:
    if nursery.level is not SandboxLevel.NAMESPACES:
        pytest.skip("/tmp is the machine's own")
    limits = Limits(seconds=60, file_bytes=8 * _MIB)
    succeeded, given, status = attempt(nursery, "fill", limits, path="/tmp", bytes=16 * _MIB)
    assert succeeded is False
    assert "No space left" in given
    assert status.ok


def test_disk_in_a_writable_folder(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "from before").write_bytes(b"x" * 16 * _MIB)
    limits = Limits(seconds=60, file_bytes=8 * _MIB)
    _, _, status = attempt(
        nursery, "fill", limits, {"writable": [tmp_path]}, path=str(tmp_path), bytes=32 * _MIB, hold=30
    )
    assert status.signal == 9
    assert len(status.violations) == 1
    assert "written to disk, the limit is 8388608" in status.violations[0]


def test_one_large_file(nursery: Nursery, tmp_path: Path) -> None:
    limits = Limits(seconds=60, file_bytes=8 * _MIB)
    succeeded, given, status = attempt(
        nursery, "one_file", limits, {"writable": [tmp_path]}, path=str(tmp_path / "file"), bytes=16 * _MIB
    )
    assert succeeded is False
    assert "too large" in given
    assert status.ok
    assert (tmp_path / "file").stat().st_size <= 8 * _MIB


def test_threads(nursery: Nursery) -> None:
    succeeded, _, status = attempt(nursery, "threads", Limits(seconds=60, processes=4), count=4096)
    assert succeeded is None
    # In a pid namespace with a limit of its own the last thread cannot be made; elsewhere the warden counts them.
    ended = status.code == 1 and "start new thread" in status.output
    assert ended or (status.signal == 9 and "threads at one time" in status.violations[0])


def test_open_files(nursery: Nursery) -> None:
    succeeded, given, _ = attempt(nursery, "open_many", Limits(seconds=60, open_files=50), count=100)
    assert succeeded is False
    assert "Too many open files" in given


def test_an_older_kernel_is_left_its_machine_wide_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Linux 6.14 pid_max is no matter of a namespace: root in a sandbox would set it for everyone."""

    def opened(*_: object) -> int:
        raise AssertionError("pid_max was opened")

    monkeypatch.setattr(isolation.os, "open", opened)
    monkeypatch.setattr(isolation, "kernel_release", lambda: (6, 13))
    isolation._limit_pids(Policy(isolation="namespaces", processes=4))
    monkeypatch.setattr(isolation, "kernel_release", lambda: (6, 14))
    with pytest.raises(AssertionError, match="pid_max"):
        isolation._limit_pids(Policy(isolation="namespaces", processes=4))
