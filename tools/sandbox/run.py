"""Run a program in the sandbox and wait for it: what compilers are run with."""

from __future__ import annotations

import contextlib
import functools
import os
import selectors
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tools.channel import ChannelError, receive_json, send_json
from tools.sandbox.limits import Completed, Limits, SandboxError
from tools.sandbox.policy import Policy
from tools.types import SandboxLevel

UNWATCHED_SECONDS = 5.0
_LAUNCH = str(Path(__file__).with_name("launch.py"))


def run_sandboxed(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str],
    limits: Limits,
    writable: Sequence[Path],
    level: SandboxLevel,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    max_output: int = 4 << 20,
) -> Completed:
    """Run `argv` (looked up in the PATH of `env`, no shell) to its end under `limits`, with no network.

    It may write to the `writable` folders and to a private /tmp. `cwd` and `readable` paths are kept visible where they
    lie below /tmp or a `hidden` path. At most `max_output` bytes of each stream are kept. A program that cannot be run
    has returncode 127 and says why on stderr. Its whole group is dead on return. Raises SandboxError.
    """
    policy = Policy(
        isolation=level.value,
        **limits.model_dump(),
        writable=[str(p.absolute()) for p in writable],
        # Of a virtual environment only who runs in it knows: the launcher starts without its packages.
        readable=[str(p.absolute()) for p in (cwd, *readable)] + [sys.prefix, sys.base_prefix],
        hidden=[str(p.absolute()) for p in hidden],
    )
    request = {"argv": list(argv), "cwd": str(cwd), "env": env}
    return run_warden(_LAUNCH, policy, request, max_output, "the sandbox")


def run_warden(launcher: str, policy: Policy, request: dict[str, Any], max_output: int, what: str) -> Completed:
    """Start `launcher` (a file that runs `warden.watch`), hand it the request, and wait for its program's end. `what`
    names the sandbox in errors. Raises SandboxError."""
    ours, theirs = socket.socketpair()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    with ours, os.fdopen(out_read, "rb") as out, os.fdopen(err_read, "rb") as err:
        try:
            warden = subprocess.Popen(
                [sys.executable, "-I", "-S", launcher, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), out_write, err_write],
                env={},
            )
        finally:
            theirs.close()
            os.close(out_write)
            os.close(err_write)
        try:
            whole = {**request, "policy": policy.to_json(), "stdout": out_write, "stderr": err_write}
            send_json(ours, whole, timeout=30)
            stdout, stderr = _collect((out.fileno(), err.fileno()), max_output, lambda: warden.poll() is None)
            outcome = _outcome(ours)
        except ChannelError as error:
            raise SandboxError(f"{what}'s warden is gone ({error}); `agent doctor` tells more") from None
        finally:
            ours.close()  # which tells the warden to end what still runs
            warden.wait()
    if outcome["error"]:
        raise SandboxError(
            f"{what} could not be set up ({outcome['error']}); `agent doctor` tells what this machine can do"
        )
    return Completed(
        returncode=outcome["code"],
        stdout=stdout,
        stderr=stderr,
        **{name: outcome[name] for name in _SHARED},
    )


_SHARED = ("signal", "timed_out", "out_of_memory", "violations", "peak_memory", "seconds")


@functools.cache
def probe_level() -> SandboxLevel:
    """The strongest level that works here: tried for real, once per process."""
    with contextlib.suppress(SandboxError):
        done = run_sandboxed(
            ["/bin/true"],
            cwd=Path("/"),
            env={},
            limits=Limits(seconds=30),
            writable=[],
            level=SandboxLevel.NAMESPACES,
        )
        if done.returncode == 0:
            return SandboxLevel.NAMESPACES
    return SandboxLevel.LIMITS


def _collect(fds: tuple[int, int], most: int, watched: Callable[[], bool]) -> tuple[bytes, bytes]:
    """Read both streams to their ends, which come when the whole group is dead; keep the first `most` bytes of each.

    Without its warden (`watched` is false) a group may live on and keep the streams open: then they are given up.
    """
    kept = {fd: bytearray() for fd in fds}
    given_up: float | None = None
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map() and (given_up is None or time.monotonic() < given_up):
            for key, _ in selector.select(timeout=1.0):
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fd)
                kept[key.fd] += data[: most - len(kept[key.fd])]
            if given_up is None and not watched():
                given_up = time.monotonic() + UNWATCHED_SECONDS
    return bytes(kept[fds[0]]), bytes(kept[fds[1]])


def _outcome(control: socket.socket) -> dict[str, Any]:
    first = receive_json(control, timeout=60)
    return first if "pid" not in first else receive_json(control, timeout=60)
