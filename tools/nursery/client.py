"""The nursery as its users see it: start one, spawn children, wait for them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

from tools.channel import ChannelClosed, ChannelError, ChannelTimeout, receive_json, send_json
from tools.nursery.environment import child_environment
from tools.sandbox.limits import ExitStatus, Limits, SandboxError
from tools.sandbox.policy import Policy
from tools.types import SandboxLevel

_START_SECONDS = 180.0
_SPAWN_SECONDS = 60.0
_MAX_REPLY = 64 << 10
_MAX_ARGUMENTS = 64 << 20


class NurseryError(SandboxError):
    """The nursery could not do what was asked: the machine's or our own fault."""


class Child:
    """A process that the nursery forked, held by its owner: closing it ends it.

    `sock` is the stream socket to the child, and nothing that comes from it can be trusted. `pid` is the child's.
    """

    def __init__(self, pid: int, sock: socket.socket, control: socket.socket) -> None:
        self.pid = pid
        self.sock = sock
        self._control = control
        self._status: ExitStatus | None = None

    def wait(self, timeout: float | None = None) -> ExitStatus | None:
        """How it ended, or None after `timeout` seconds in which it did not. None waits for ever.

        Raises NurseryError where its warden is gone without a word.
        """
        if self._status is None:
            try:
                self._status = _status(receive_json(self._control, timeout=timeout))
            except ChannelTimeout:
                return None
            except ChannelError as error:
                raise NurseryError(f"the warden of process {self.pid} is gone: {error}") from None
        return self._status

    def kill(self) -> None:
        """End it and all its descendants now. `wait` tells when that is done."""
        with contextlib.suppress(OSError):
            self._control.send(b"K", socket.MSG_NOSIGNAL)

    def close(self) -> None:
        """Let go of it: whatever still runs is killed."""
        self.sock.close()
        self._control.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Nursery:
    """A connection to a nursery. Safe to use from several threads."""

    def __init__(
        self, connection: socket.socket, process: subprocess.Popen[bytes] | None = None, home: str | None = None
    ) -> None:
        self._connection = connection
        self._process = process
        self._home = home
        self._level: SandboxLevel | None = None
        self._lock = threading.Lock()

    @classmethod
    def start(cls, level: SandboxLevel, *, preload: Path | None = None) -> Nursery:
        """Start a nursery process; it imports torch while the caller goes on.

        `level` is what `sandboxed=True` means in it. `preload` is a library to load before all others.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        home = tempfile.mkdtemp(prefix="kernel-agent-")
        with theirs:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "tools.nursery", str(theirs.fileno()), str(os.getpid()), level.value],
                env=child_environment(home, preload),
                cwd="/",
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                start_new_session=True,
            )
        return cls(ours, process, home)

    @classmethod
    def attach(cls, fd: int) -> Nursery:
        """The nursery of a child that was spawned with `share_nursery`, from its `args["nursery_fd"]`."""
        return cls(socket.socket(fileno=fd))

    @property
    def level(self) -> SandboxLevel:
        """What `sandboxed=True` means here. Waits for the nursery to be up. Raises NurseryError."""
        with self._lock:
            return self._greeted()

    @property
    def pid(self) -> int | None:
        """The nursery's process, where this object started it."""
        return self._process.pid if self._process else None

    def spawn(
        self,
        target: str,
        args: dict[str, Any],
        *,
        sandboxed: bool,
        limits: Limits | None = None,
        writable: Sequence[Path] = (),
        readable: Sequence[Path] = (),
        hidden: Sequence[Path] = (),
        fds: Sequence[int] = (),
        share_nursery: bool = False,
    ) -> Child:
        """Fork a child that calls `target` ("package.module:function") as `function(sock, args, fds)`.

        `args` is JSON. `fds` are duplicated into the child, in order. In a sandboxed child `writable` folders can be
        written to, `readable` paths are kept visible where they lie below /tmp or a hidden folder, and `hidden` paths
        are covered. With `share_nursery` the child gets `args["nursery_fd"]` for `Nursery.attach`. Raises NurseryError.
        """
        policy = self._policy(sandboxed, limits or Limits(), writable, readable, hidden)
        request = {"policy": policy.to_json(), "share_nursery": share_nursery}
        reply, received = self._ask(json.dumps(request).encode(), fds)
        if len(received) != 2:
            for fd in received:
                os.close(fd)
            raise NurseryError(f"the nursery could not fork: {reply.get('error', 'no reason given')}")
        sock, control = (socket.socket(fileno=fd) for fd in received)
        try:
            with contextlib.suppress(ChannelClosed):  # a child that failed to start tells why on the other socket
                send_json(sock, {"target": target, "args": args}, timeout=_SPAWN_SECONDS, max_bytes=_MAX_ARGUMENTS)
            first = receive_json(control, timeout=_SPAWN_SECONDS)
        except (ChannelError, ValueError) as error:
            sock.close()
            control.close()
            raise NurseryError(f"a child did not start: {error}") from error
        if "pid" not in first:
            sock.close()
            control.close()
            _status(first)
            raise NurseryError("a child ended before it began")
        return Child(first["pid"], sock, control)

    def _policy(
        self,
        sandboxed: bool,
        limits: Limits,
        writable: Sequence[Path],
        readable: Sequence[Path],
        hidden: Sequence[Path],
    ) -> Policy:
        if not sandboxed:
            return Policy(isolation="none")
        return Policy(
            isolation=self.level.value,
            **limits.model_dump(),
            writable=[str(p.absolute()) for p in writable],
            readable=[str(p.absolute()) for p in readable],
            hidden=[str(p.absolute()) for p in hidden],
        )

    def _ask(self, request: bytes, fds: Sequence[int]) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                self._greeted()
                self._connection.settimeout(_SPAWN_SECONDS)
                socket.send_fds(self._connection, [request], list(fds))
                data, received, _, _ = socket.recv_fds(self._connection, _MAX_REPLY, 2)
            except OSError as error:
                raise NurseryError(f"the nursery does not answer ({error}): start the run again") from error
        if not data:
            raise NurseryError("the nursery has ended: start the run again")
        return json.loads(data), received

    def _greeted(self) -> SandboxLevel:
        """Take the nursery's first message, once. To be called with the lock held."""
        if self._level is None:
            self._connection.settimeout(_START_SECONDS)
            try:
                data = self._connection.recv(_MAX_REPLY)
            except OSError as error:
                raise NurseryError(f"the nursery did not start ({error})") from error
            if not data:
                raise NurseryError("the nursery ended while it was starting: its own message is above")
            self._level = SandboxLevel(json.loads(data)["level"])
        return self._level

    def close(self) -> None:
        """End the nursery, if this object started it, with everything that was forked from it."""
        self._connection.close()
        if self._process is None:
            return
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.send_signal(signal.SIGKILL)
            self._process.wait()
        if self._home:
            shutil.rmtree(self._home, ignore_errors=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _status(outcome: dict[str, Any]) -> ExitStatus:
    error = outcome.pop("error")
    if error:
        raise NurseryError(f"the sandbox could not be set up ({error}); `agent doctor` tells what this machine can do")
    return ExitStatus(**outcome)
