"""A program under an instrument may talk to itself, and else is held as any program is."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from tools.probe.instrument import run_instrumented
from tools.probe.launch import CAP_PERFMON
from tools.sandbox import Completed, Limits, SandboxError, probe_level
from tools.types import SandboxLevel

pytestmark = pytest.mark.skipif(probe_level() is not SandboxLevel.NAMESPACES, reason="needs namespaces")
modes = pytest.mark.parametrize(
    "counters",
    [False, pytest.param(True, marks=pytest.mark.skipif(os.geteuid() != 0, reason="needs root"))],
    ids=["plain", "counters"],
)

TALK = """
import socket
server = socket.socket()
server.bind(("127.0.0.1", 0))
server.listen(1)
client = socket.create_connection(server.getsockname())
client.sendall(b"heard")
print(server.accept()[0].recv(9).decode())
"""
TRY = """
import ctypes, os, pathlib, socket
def attempt(what):
    try:
        what()
        return "allowed"
    except Exception as error:
        return type(error).__name__
print(attempt(lambda: socket.create_connection(("192.0.2.1", 80), 5)))
print(attempt(lambda: open("/etc/hostname", "w")))
print(attempt(lambda: os.unlink("/etc/hostname")))
print(attempt(lambda: os.mknod("/tmp/disk", 0o060600, 0x0800)))
print(attempt(lambda: os.kill(1, 0) or os.setuid(4000)))
print(ctypes.CDLL(None).mount(b"none", b"/mnt", b"tmpfs", 0, None))
print(sorted(p.name for p in pathlib.Path("/proc").iterdir() if p.name.isdigit()))
print(sorted(os.environ), os.listdir("/tmp"))
"""
CAPABILITIES = """
print(*(line.split()[1] for line in open("/proc/self/status") if line.startswith(("CapPrm", "CapEff", "CapBnd"))))
"""


def run(script: str, *, counters: bool, seconds: float = 60, **more: list[Path]) -> Completed:
    argv = [sys.executable, "-I", "-S", "-c", script]
    return run_instrumented(
        argv,
        cwd=Path("/"),
        env={},
        limits=Limits(seconds=seconds),
        writable=more.get("writable", []),
        readable=[Path(sys.base_prefix), Path(sys.prefix)],
        level=SandboxLevel.NAMESPACES,
        counters=counters,
    )


@modes
def test_it_has_a_loopback_of_its_own(counters: bool):
    done = run(TALK, counters=counters)
    assert (done.returncode, done.stdout) == (0, b"heard\n"), done.stderr


@modes
def test_it_reaches_nothing_else(counters: bool, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    done = run(TRY, counters=counters)
    assert done.returncode == 0, done.stderr
    network, write, remove, node, user, mounted, processes, rest = done.stdout.decode().splitlines()
    assert "allowed" not in (network, write, remove, node, user)
    assert mounted == "-1"
    assert processes == "['1', '2']"
    assert "KEY" not in rest
    assert rest.endswith("[]")
    assert "forbidden call: mount" in done.violations


@modes
def test_it_keeps_one_capability_at_most(counters: bool):
    kept = 1 << CAP_PERFMON if counters else 0
    assert run(CAPABILITIES, counters=counters).stdout.decode().split() == [f"{kept:016x}"] * 3


@modes
def test_a_time_limit_ends_it_and_all_it_has_started(counters: bool):
    began = time.monotonic()
    done = run("import os, time\nos.fork()\ntime.sleep(500)", counters=counters, seconds=1)
    assert done.timed_out
    assert time.monotonic() - began < 100


@modes
def test_the_number_of_its_processes_is_limited_and_the_machines_is_not_touched(counters: bool):
    before = Path("/proc/sys/kernel/pid_max").read_text()
    script = """
import os, time
for _ in range(400):
    if os.fork() == 0:
        time.sleep(500)
time.sleep(500)
"""
    done = run(script, counters=counters)
    assert not done.timed_out
    assert any("processes at one time" in words for words in done.violations), done
    assert Path("/proc/sys/kernel/pid_max").read_text() == before


@modes
def test_it_writes_to_its_folder(counters: bool, tmp_path: Path):
    done = run(f"open({str(tmp_path / 'out')!r}, 'w').write('x')", counters=counters, writable=[tmp_path])
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "x"


def test_without_namespaces_it_is_not_run():
    with pytest.raises(SandboxError, match="namespaces"):
        run_instrumented(["true"], cwd=Path("/"), env={}, limits=Limits(), writable=[], level=SandboxLevel.LIMITS)
