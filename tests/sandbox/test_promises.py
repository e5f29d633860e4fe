"""The sandbox's promises to the machine, one by one, against real attempts to break them."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tools.channel import ChannelClosed, receive_json
from tools.nursery import ExitStatus, Limits, Nursery
from tools.types import SandboxLevel

WAIT = 60
_MIB = 1 << 20


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery.start(SandboxLevel.NAMESPACES) as started:
        yield started


def attempt(
    nursery: Nursery, what: str, limits: Limits | None = None, paths: dict[str, list[Path]] | None = None, **args: Any
) -> tuple[bool | None, Any, ExitStatus]:
    """Whether an attempt succeeded (None: no reply came), what it gave, and how the child ended."""
    with nursery.spawn(
        "tests.sandbox.sandbox_targets:attempt",
        {"what": what, **args},
        sandboxed=True,
        limits=limits or Limits(seconds=WAIT),
        **(paths or {}),
    ) as child:
        try:
            succeeded, given = receive_json(child.sock, timeout=WAIT)
        except ChannelClosed:
            succeeded, given = None, None
        status = child.wait(WAIT)
    assert status is not None
    return succeeded, given, status


@pytest.mark.parametrize("locked", [True, False])
def test_network(nursery: Nursery, locked: bool) -> None:
    """A server on this machine's loopback hears nothing, filter or not."""
    heard: list[object] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(WAIT)

        def listen() -> None:
            try:
                heard.append(server.accept())
            except OSError:
                pass

        thread = threading.Thread(target=listen)
        thread.start()
        succeeded, _, status = attempt(nursery, "connect", port=server.getsockname()[1], locked=locked)
        server.shutdown(socket.SHUT_RDWR)
        thread.join()
    assert succeeded is False
    assert heard == []
    assert status.violations == (["network attempt: socket(AF_INET)"] if locked else [])


def test_local_sockets(nursery: Nursery, tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        for locked in (True, False):
            succeeded, _, _ = attempt(nursery, "connect_unix", path=str(tmp_path / "socket"), locked=locked)
            assert succeeded is False


@pytest.mark.parametrize("what", ["fork", "run", "exec", "spawn"])
def test_no_processes_and_no_programs(nursery: Nursery, what: str) -> None:
    succeeded, given, status = attempt(nursery, what)
    assert succeeded is False
    assert "PermissionError" in given
    assert status.code == 0
    assert status.violations
    assert all(v.startswith(("process attempt", "program attempt")) for v in status.violations)
    assert status.processes_seen == 1


@pytest.mark.parametrize(
    "name",
    [
        *(
            "ptrace",
            "process_vm_readv",
            "process_vm_writev",
            "pidfd_open",
            "pidfd_getfd",
            "kcmp",
            "bpf",
            "perf_event_open",
        ),
        *("userfaultfd", "io_uring_setup", "mount", "umount2", "pivot_root", "chroot", "open_tree", "move_mount"),
        *("fsopen", "unshare", "setns", "keyctl", "add_key", "init_module", "open_by_handle_at", "tkill"),
    ],
)
def test_system_calls_that_nobody_needs(nursery: Nursery, name: str) -> None:
    succeeded, given, status = attempt(nursery, "call", name=name)
    assert succeeded is False
    assert "PermissionError" in given
    assert [v for v in status.violations if name in v]


@pytest.mark.parametrize("name", ["clone3", "openat2", "shmget"])
def test_system_calls_that_fall_back_to_others(nursery: Nursery, name: str) -> None:
    succeeded, given, status = attempt(nursery, "call", name=name)
    assert succeeded is False
    assert "not implemented" in given
    assert status.ok


def test_no_page_is_taken_out_of_shared_memory(nursery: Nursery) -> None:
    """Or another process would wait for new ones where it is timed. Memory may still be asked for."""
    succeeded, given, _ = attempt(nursery, "punch")
    assert succeeded
    assert given == [errno.EPERM, errno.EPERM, ord("x"), 0]


@pytest.mark.parametrize("pid", [1, -1, 0x7FFFFFF0])
def test_signals_to_others(nursery: Nursery, pid: int) -> None:
    succeeded, _, status = attempt(nursery, "kill", pid=pid)
    assert succeeded is False
    assert status.violations == [f"signal attempt: kill({pid}, 15)"]


def test_other_processes_are_not_even_seen(nursery: Nursery) -> None:
    _, names, _ = attempt(nursery, "list", path="/proc")
    assert sorted(int(n) for n in names if n.isdigit()) == [1, 2]
    # Its own init belongs to us: neither its memory nor its descriptors nor its environment can be looked at.
    for name in ("mem", "environ", "maps", "fd/0", "cwd/proc/1/maps"):
        assert attempt(nursery, "read", path=f"/proc/1/{name}", locked=False)[0] is False


@pytest.mark.parametrize("locked", [True, False])
def test_files_outside_can_be_read_but_not_changed(nursery: Nursery, tmp_path: Path, locked: bool) -> None:
    victim = tmp_path / "tolerances.py"
    victim.write_text("TOLERANCE = 1e-4")
    paths = {"readable": [tmp_path]}
    assert attempt(nursery, "read", paths=paths, path=str(victim))[1] == "TOLERANCE = 1e-4"
    attempts: list[tuple[str, dict[str, Any]]] = [
        ("write", {}),
        ("truncate", {}),
        ("edit", {"how": "unlink"}),
        ("edit", {"how": "rename", "with": [str(tmp_path / "other")]}),
        ("edit", {"how": "chmod", "with": [0o777]}),
    ]
    for what, more in attempts:
        succeeded, given, status = attempt(nursery, what, paths=paths, path=str(victim), locked=locked, **more)
        assert succeeded is False
        assert "Read-only" in given
        assert status.code == 0
        if locked:
            assert len(status.violations) == 1
            assert status.violations[0].startswith("write attempt")
            assert str(tmp_path) in status.violations[0]
    assert victim.read_text() == "TOLERANCE = 1e-4"
    assert [p.name for p in tmp_path.iterdir()] == ["tolerances.py"]


def test_our_own_files_are_out_of_reach(nursery: Nursery) -> None:
    own = Path(__file__).parents[2] / "tools" / "types.py"
    before = own.read_text()
    succeeded, _, status = attempt(nursery, "write", path=str(own))
    assert succeeded is False
    if not own.is_relative_to("/tmp"):  # there, attempts are not told from what a child may do in its own /tmp
        assert status.violations == [f"write attempt: openat({str(own)!r})"]
    assert own.read_text() == before


def test_a_writable_folder_is_that_and_no_more(nursery: Nursery, tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("untouched")
    (inside / "link").symlink_to(outside)
    paths = {"writable": [inside], "readable": [tmp_path]}
    succeeded, _, status = attempt(nursery, "write", paths=paths, path=str(inside / "file"))
    assert succeeded
    assert status.ok
    assert (inside / "file").read_text() == "edited"
    assert attempt(nursery, "write", paths=paths, path=str(inside / "link"))[0] is False
    assert attempt(nursery, "write", paths=paths, path=f"{inside}/../outside")[0] is False
    assert outside.read_text() == "untouched"


def test_tmp_is_private(nursery: Nursery, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    assert attempt(nursery, "read", path=str(tmp_path / "secret"))[0] is False
    assert attempt(nursery, "write", path="/tmp/left by a candidate")[0]
    assert not Path("/tmp/left by a candidate").exists()
    assert attempt(nursery, "write", path="/dev/shm/left by a candidate")[0]
    assert not Path("/dev/shm/left by a candidate").exists()
    # What Python itself is loaded from stays visible, wherever it lies.
    loaded = {Path(p).relative_to("/tmp").parts[0] for p in (*sys.path, sys.prefix) if p.startswith("/tmp/")}
    assert set(attempt(nursery, "list", path="/tmp")[1]) <= loaded


def test_hidden_paths_are_empty_and_what_is_shown_in_them_is_there(nursery: Nursery, tmp_path: Path) -> None:
    runs, own = tmp_path / "runs", tmp_path / "runs" / "this" / "kernels"
    own.mkdir(parents=True)
    (own / "mine").write_text("mine")
    (runs / "answer").write_text("answer")
    (tmp_path / "seed").write_text("seed")
    paths = {"readable": [tmp_path, own], "hidden": [runs, tmp_path / "seed"]}
    assert attempt(nursery, "list", paths=paths, path=str(tmp_path))[1] == ["runs", "seed"]
    assert attempt(nursery, "list", paths=paths, path=str(runs))[1] == ["this"]
    assert attempt(nursery, "read", paths=paths, path=str(own / "mine"))[1] == "mine"
    assert attempt(nursery, "read", paths=paths, path=str(tmp_path / "seed"))[1] == ""
    assert attempt(nursery, "write", paths=paths, path=str(runs / "new"))[0] is False


def test_devices(nursery: Nursery) -> None:
    """No disk, no terminal, no memory device; as uid 0 a disk could be written to although it is mounted read-only."""
    _, devices, _ = attempt(nursery, "devices")
    harmless = {"/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"}
    assert harmless <= set(devices)
    assert all(d.startswith(("/dev/nvidia", "/dev/dxg")) for d in set(devices) - harmless)
    assert attempt(nursery, "write", path="/dev/null")[0]


@pytest.mark.parametrize("path", ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"])
def test_the_machines_settings(nursery: Nursery, path: str) -> None:
    assert attempt(nursery, "write", path=path, locked=False)[0] is False


def test_privileges(nursery: Nursery) -> None:
    _, status, _ = attempt(nursery, "status")
    assert {int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {0}
    assert status["NoNewPrivs"] == "1"
    assert status["Seccomp"] == "2"


def test_it_stays_the_same_user(nursery: Nursery) -> None:
    _, status, _ = attempt(nursery, "status")
    assert status["Uid"].split() == [str(os.getuid())] * 4


def test_nobody_has_to_be_asked_twice(nursery: Nursery) -> None:
    """A repeated attempt is one line in the record, and the record is bounded."""
    with nursery.spawn("tests.sandbox.sandbox_targets:insist", {}, sandboxed=True) as child:
        status = child.wait(WAIT)
    assert status is not None
    assert len(status.violations) <= 64
    assert len(set(status.violations)) == len(status.violations)
