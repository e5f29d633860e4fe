"""Whoever dies, and however: nothing that hung on it is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from process_tree import Process, descendants, left_of

from tools.channel import receive_json
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.types import SandboxLevel

TARGETS = "tests.nursery.nursery_targets:"
WAIT = 60

STARTER = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored in what a shell has put into the background
from tools.channel import receive_json
from tools.nursery import Nursery
from tools.types import SandboxLevel

nursery = Nursery.start(SandboxLevel(sys.argv[1]))
children = [
    nursery.spawn("tests.nursery.nursery_targets:end", {"how": "hang"}, sandboxed=True),
    nursery.spawn("tests.nursery.nursery_targets:hang_with_descendants", {}, sandboxed=False),
]
for child in children:
    receive_json(child.sock, timeout=60)
print("ready", nursery.pid, flush=True)
time.sleep(1000)
"""


@contextmanager
def starter(level: SandboxLevel) -> Iterator[tuple[subprocess.Popen[str], int, set[Process]]]:
    """A process with a nursery, a hanging worker, and a hanging judge with descendants: it, the nursery, and all."""
    if level is SandboxLevel.NAMESPACES and probe_level() is not SandboxLevel.NAMESPACES:
        pytest.skip("this machine gives no namespaces")
    root = Path(__file__).parents[2]
    process = subprocess.Popen(
        [sys.executable, "-c", STARTER, level.value], stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(root)}
    )
    try:
        assert process.stdout is not None
        word, nursery = process.stdout.readline().split()
        assert word == "ready"
        below = descendants(process.pid)
        # The nursery, two wardens, their children, and four that the trusted one has left; an init with namespaces.
        assert len(below) >= 8
        yield process, int(nursery), below
    finally:
        process.kill()
        process.wait()
        if process.stdout:
            process.stdout.close()


@pytest.mark.parametrize(
    ("level", "number"),
    [
        (SandboxLevel.NAMESPACES, signal.SIGKILL),
        (SandboxLevel.LIMITS, signal.SIGKILL),
        (SandboxLevel.NAMESPACES, signal.SIGTERM),
        (SandboxLevel.LIMITS, signal.SIGINT),
    ],
)
def test_a_starter_that_is_killed_leaves_nothing_behind(level: SandboxLevel, number: signal.Signals) -> None:
    with starter(level) as (process, _, below):
        process.send_signal(number)
        assert left_of(below) == set()


@pytest.mark.parametrize("level", list(SandboxLevel), ids=str)
def test_a_nursery_that_is_killed_leaves_nothing_behind(level: SandboxLevel) -> None:
    with starter(level) as (_, nursery, below):
        os.kill(nursery, signal.SIGKILL)
        assert left_of(below - {p for p in below if p[0] == nursery}) == set()


def test_a_starter_that_is_killed_while_its_nursery_starts_leaves_nothing_behind() -> None:
    script = STARTER.replace("children = [", "print('starting', flush=True); time.sleep(1000); children = [")
    process = subprocess.Popen(
        [sys.executable, "-c", script, SandboxLevel.LIMITS.value],
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(Path(__file__).parents[2])},
    )
    assert process.stdout is not None
    with process.stdout:
        assert process.stdout.readline() == "starting\n"
        below = descendants(process.pid)
        assert below
        process.kill()
        process.wait()
    assert left_of(below) == set()


@pytest.mark.parametrize("how", ["kill", "close"])
def test_a_trusted_child_goes_with_all_its_descendants(nursery: Nursery, how: str) -> None:
    with nursery.spawn(TARGETS + "hang_with_descendants", {}, sandboxed=False) as child:
        assert receive_json(child.sock, timeout=WAIT) == "hanging"
        assert nursery.pid is not None
        warden = next(pid for pid, _ in descendants(nursery.pid) if child.pid in {p for p, _ in descendants(pid)})
        below = descendants(warden)
        assert len(below) >= 4
        child.kill() if how == "kill" else child.close()
        assert left_of(below) == set()


def test_a_closed_nursery_leaves_neither_processes_nor_files() -> None:
    with Nursery.start(SandboxLevel.LIMITS) as nursery:
        child = nursery.spawn(TARGETS + "end", {"how": "hang"}, sandboxed=True)
        receive_json(child.sock, timeout=WAIT)
        assert nursery.pid is not None
        below = descendants(nursery.pid)
        home = nursery._home
        assert home
        assert Path(home).is_dir()
    assert left_of(below) == set()
    assert not Path(home).exists()
    child.close()
