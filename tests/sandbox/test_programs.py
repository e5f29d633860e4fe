"""Programs in the sandbox: what compilers get, and what is left of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
import venv
from pathlib import Path

import pytest
from process_tree import descendants, left_of

from tools.sandbox import Completed, Limits, SandboxError, run_sandboxed
from tools.types import SandboxLevel

_PATH = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
# A time to sleep for that no other run of these tests has.
NAP = str(1000 + os.getpid())
levels = pytest.mark.parametrize("level", list(SandboxLevel), ids=str)


def run(
    *argv: str,
    level: SandboxLevel = SandboxLevel.NAMESPACES,
    cwd: Path = Path("/"),
    limits: Limits | None = None,
    writable: list[Path] | None = None,
    **more: int,
) -> Completed:
    return run_sandboxed(
        argv, cwd=cwd, env=_PATH, limits=limits or Limits(seconds=60), writable=writable or [], level=level, **more
    )


@levels
def test_streams_and_code_come_back(level: SandboxLevel) -> None:
    done = run("sh", "-c", "echo out; echo err >&2; exit 3", level=level)
    assert (done.returncode, done.signal, done.stdout, done.stderr) == (3, None, b"out\n", b"err\n")
    assert not done.timed_out


@levels
def test_arguments_are_not_for_a_shell(level: SandboxLevel) -> None:
    done = run("printf", "%s", "`id` $(id) ; id", level=level)
    assert done.stdout == b"`id` $(id) ; id"


@levels
def test_the_environment_is_what_was_given(level: SandboxLevel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    assert run("env", level=level).stdout.decode().split() == [f"PATH={_PATH['PATH']}"]


@levels
def test_a_program_that_does_not_exist(level: SandboxLevel) -> None:
    done = run("no-such-compiler", level=level)
    assert done.returncode == 127
    assert b"no-such-compiler" in done.stderr


@levels
def test_a_program_that_dies_of_a_signal(level: SandboxLevel) -> None:
    assert run("sh", "-c", "kill -SEGV $$", level=level).signal == 11


@levels
def test_a_compiler_compiles_into_its_folder(level: SandboxLevel, tmp_path: Path) -> None:
    if not shutil.which("cc"):
        pytest.skip("needs a C compiler")
    (tmp_path / "a.c").write_text("int main(void) { return 42; }")
    built = run("cc", "-pipe", "-o", "a", "a.c", level=level, cwd=tmp_path, writable=[tmp_path])
    assert built.returncode == 0, built.stderr
    assert built.violations == []
    assert run(str(tmp_path / "a"), level=level, cwd=tmp_path).returncode == 42


def test_a_compiler_cannot_write_elsewhere(tmp_path: Path) -> None:
    done = run("sh", "-c", "echo x > outside", cwd=tmp_path)
    assert done.returncode != 0
    assert b"Read-only" in done.stderr
    assert list(tmp_path.iterdir()) == []


@levels
def test_a_program_has_no_network(level: SandboxLevel) -> None:
    done = run(sys.executable, "-I", "-S", "-c", "import socket; socket.socket()", level=level)
    assert done.returncode == 1
    assert done.violations == ["network attempt: socket(AF_INET)"]


@levels
def test_a_flood_is_cut(level: SandboxLevel) -> None:
    done = run("sh", "-c", "yes correct | head -c 67108864", level=level, max_output=1000)
    assert done.returncode == 0
    assert done.stdout == (b"correct\n" * 125)


@levels
def test_a_program_that_hangs_is_ended_with_all_it_has_started(level: SandboxLevel) -> None:
    began = time.monotonic()
    script = f"trap '' TERM INT HUP; (setsid sh -c 'trap \"\" TERM; sleep {NAP}' &); sleep {NAP}"
    done = run("sh", "-c", script, level=level, limits=Limits(seconds=0.5))
    assert done.timed_out
    assert done.signal == 9
    assert time.monotonic() - began < 60
    assert left_of(_sleepers()) == set()


@levels
def test_what_a_program_leaves_running_is_ended(level: SandboxLevel) -> None:
    done = run("sh", "-c", f"setsid sleep {NAP} > /dev/null 2>&1 & echo started", level=level)
    assert done.returncode == 0
    assert done.stdout == b"started\n"
    assert left_of(_sleepers()) == set()


@levels
def test_a_fork_bomb(level: SandboxLevel) -> None:
    """One that stops by itself at two thousand processes, for the sake of the machine if this fails."""
    script = f"f() {{ if [ $1 -lt 10 ]; then f $(($1 + 1)) & f $(($1 + 1)) & fi; sleep {NAP}; }}; f 0"
    done = run("sh", "-c", script, level=level, limits=Limits(seconds=60, processes=30))
    assert done.signal == 9
    assert not done.timed_out
    assert "the limit is 30" in done.violations[0]
    assert left_of(_sleepers()) == set()


@levels
def test_memory(level: SandboxLevel) -> None:
    limits = Limits(seconds=60, memory_bytes=64 << 20)
    done = run(sys.executable, "-I", "-S", "-c", "x = b'x' * (256 << 20)\nwhile True: pass", level=level, limits=limits)
    assert done.out_of_memory
    assert done.signal == 9


def test_a_sandbox_that_cannot_be_had_is_an_error_of_ours(tmp_path: Path) -> None:
    """Sizes that no file system can have: setting up fails, and that is told as such and not as the program's end."""
    with pytest.raises(SandboxError, match="agent doctor"):
        run("true", limits=Limits(seconds=60, file_bytes=1 << 70))


def _sleepers() -> set[tuple[int, str]]:
    """Every process on this machine that one of these tests has put to sleep."""
    found = set[tuple[int, str]]()
    for pid, began in descendants(1):
        try:
            if Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[:2] == [b"sleep", NAP.encode()]:
                found.add((pid, began))
        except OSError:
            continue
    return found


def test_a_warden_that_is_killed_is_told_and_not_waited_for_for_ever() -> None:
    """What it watched may live on with the streams open."""
    program = "import time; time.sleep(3600)"
    before = set(_wardens())
    killed: list[int] = []

    def kill() -> None:
        while not killed:
            for pid in list(set(_wardens()) - before)[:1]:
                time.sleep(0.5)  # until its program runs
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)
            time.sleep(0.05)

    killer = threading.Thread(target=kill, daemon=True)
    killer.start()
    with pytest.raises(SandboxError, match="agent doctor"):
        run(sys.executable, "-I", "-S", "-c", program, limits=Limits(seconds=3600))
    killer.join(10)
    assert killed


def _wardens() -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError):
            words = (entry / "cmdline").read_bytes().split(b"\0")
            status = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if any(w.endswith(b"sandbox/launch.py") for w in words) and int(status[1]) == os.getpid():
                found.append(int(entry.name))
    return found


@levels
def test_a_virtual_environment_below_tmp_can_be_run_from_itself(level: SandboxLevel, tmp_path: Path) -> None:
    """What is below /tmp is covered, and the launcher, which starts without packages, does not know of it."""
    venv.create(tmp_path / "venv", symlinks=True)
    packages = [p for p in sys.path if "-packages" in p]
    program = (
        "import sys; from pathlib import Path; from tools.sandbox import Limits, run_sandboxed\n"
        "from tools.types import SandboxLevel\n"
        "done = run_sandboxed([sys.executable, '-I', '-S', '-c', 'print(6 * 7)'], cwd=Path('/'), env={},\n"
        f"    limits=Limits(seconds=60), writable=[], level=SandboxLevel({level.value!r}))\n"
        "print(done.returncode, done.stdout, done.stderr)"
    )
    done = subprocess.run(
        [tmp_path / "venv/bin/python", "-c", program],
        env={"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[2]), *packages])},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout == "0 b'42\\n' b''\n", done.stderr
