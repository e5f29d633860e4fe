"""The warden: one trusted process per child, outside of its namespaces, that watches it and tells how it ended.

It enforces wall time, memory, process count and disk use of the whole group, collects what the child prints, answers
the system calls that the child's filter hands to it, and kills the group when its owner asks, closes the connection or
dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import struct
import time
import traceback
from collections.abc import Callable
from typing import NoReturn

from tools.sandbox import linux
from tools.sandbox.isolation import NAMESPACES, STATUS, become_init, hold_back
from tools.sandbox.notify import Supervisor
from tools.sandbox.output import Output
from tools.sandbox.policy import THREAD_ROOM, Outcome, Policy
from tools.sandbox.tree import Tree

_POLL_SECONDS = 0.05
_KILL_AGAIN_SECONDS = 0.002
_LENGTH = struct.Struct("!I")
KILL = b"K"


def watch(policy: Policy, control: socket.socket, run_child: Callable[[int], NoReturn], keep: set[int]) -> NoReturn:
    """Fork the child under `policy`, watch it to its end and send the outcome as one frame on `control`.

    `run_child` is called in the child with the descriptor over which it hands its filter's listener to us. `keep` are
    the descriptors that the child inherits. A first frame `{"pid": …}` on `control` says that the child is running.
    """
    warden = _Warden(policy, control, run_child, keep)
    try:
        warden.run()
    except BaseException as error:
        warden.outcome.error = (
            f"the warden failed: {error!r} at line {traceback.extract_tb(error.__traceback__)[-1].lineno}"
        )
        warden.kill_all()
        warden.send(warden.outcome.to_json())
    finally:
        os._exit(0)


class _Warden:
    def __init__(
        self, policy: Policy, control: socket.socket, run_child: Callable[[int], NoReturn], keep: set[int]
    ) -> None:
        self.policy = policy
        self.control = control
        self.run_child = run_child
        self.keep = keep
        self.outcome = Outcome()
        self.output = Output()
        self.supervisor: Supervisor | None = None
        self.started = time.monotonic()

    def run(self) -> None:
        parent = os.getppid()
        wake_read, wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
        self.killed = False
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.signal(signal.SIGTERM, lambda *_: setattr(self, "killed", True))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        linux.die_with_parent(signal.SIGTERM)
        linux.adopt_orphans()
        if os.getppid() != parent:
            return
        linux.close_all_but({self.control.fileno(), wake_read, wake_write, *self.keep})
        self._start()
        for fd in self.keep:
            os.close(fd)
        self._loop(wake_read)
        self._finish()

    def _start(self) -> None:
        self.line, child_line = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.line.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        status_read, status_write = os.pipe()
        out_read, out_write = os.pipe2(os.O_NONBLOCK)
        os.set_blocking(out_write, True)
        self.status_fd, self.out_fd = status_read, out_read
        self.tree = Tree(self.policy, self.keep)
        self.user = os.geteuid(), os.getegid()
        spaces = self.policy.isolation == "namespaces"
        try:
            pid = linux.fork_into(NAMESPACES) if spaces else os.fork()
        except OSError as error:
            self.outcome.error = str(error)
            pid = -1
        if pid == 0:
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
                signal.signal(number, signal.SIG_DFL)
            for fd in (self.line.fileno(), self.control.fileno(), status_read, out_read):
                os.close(fd)
            self._in_child(child_line.fileno(), status_write, out_write)
        for fd in (child_line.detach(), status_write, out_write):
            os.close(fd)
        self.direct = pid

    def _in_child(self, line: int, status: int, out: int) -> NoReturn:
        """In the fork: become the init of the new namespaces, or the child itself where there are none."""
        try:
            if self.policy.isolation == "namespaces":
                become_init(self.policy, self.user, line, status)
            else:
                linux.die_with_parent(signal.SIGKILL)
                # Our own stay closed to other processes of the user; into a candidate its warden must see.
                linux.set_dumpable(self.policy.isolation != "none")
                hold_back(self.policy)
            os.close(status)
            os.setsid()
            null = os.open("/dev/null", os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(out, 1)
            os.dup2(out, 2)
            linux.close_all_but({line, *self.keep})
            # A message from here carries the sender's pid, which the kernel translates for the receiver.
            os.write(line, b"started")
        except BaseException as error:
            with contextlib.suppress(OSError):
                os.write(line, b"E" + f"{type(error).__name__}: {error}".encode()[:4000])
            os._exit(125)
        self.run_child(line)

    def _loop(self, wake: int) -> None:
        self.poll = poll = select.poll()
        for fd in (wake, self.control.fileno(), self.line.fileno(), self.out_fd):
            poll.register(fd, select.POLLIN)
        next_look = self.started
        while not self.outcome.error:
            now = time.monotonic()
            if now >= next_look:
                if self._over_a_limit(now):
                    return
                next_look = time.monotonic() + _POLL_SECONDS
            for fd, _ in poll.poll(max(0.0, next_look - now) * 1000 + 1):
                if fd == wake:
                    with contextlib.suppress(BlockingIOError):
                        os.read(wake, 4096)
                elif fd == self.control.fileno():
                    with contextlib.suppress(BlockingIOError, ConnectionError):
                        self.control.recv(64, socket.MSG_DONTWAIT)
                    self.killed = True
                elif fd == self.line.fileno():
                    self._hear()
                elif fd == self.out_fd:
                    if not self.output.drain(fd):
                        poll.unregister(fd)
                elif self.supervisor and not self.supervisor.answer(self.outcome.violations):
                    poll.unregister(fd)
            if self.killed or self._ended():
                return

    def _hear(self) -> bool:
        """The child's line: that it runs, the tree's descriptors, or its filter's listener. False at its end."""
        message, ancillary, _, _ = self.line.recvmsg(4096, 4096)
        if not message:
            with contextlib.suppress(KeyError):
                self.poll.unregister(self.line.fileno())
            return False
        sender, fds = _read_ancillary(ancillary)
        if message == b"started":
            self.target = sender
            self.outcome.processes_seen = max(1, self.outcome.processes_seen)
            self.send({"pid": sender})
        elif message == b"tree":
            self.tree.see_through(fds)
        elif message == b"listener" and self.supervisor is None:
            self.supervisor = Supervisor(fds[0], self.policy)
            self.poll.register(fds[0], select.POLLIN)
        elif message[:1] == b"E" and not hasattr(self, "target"):
            self.outcome.error = message[1:].decode(errors="replace")
        else:
            for fd in fds:
                os.close(fd)
        return True

    def _over_a_limit(self, now: float) -> bool:
        policy, outcome = self.policy, self.outcome
        if policy.isolation == "none":
            return False
        use = self.tree.measure()
        outcome.peak_memory = max(outcome.peak_memory, use.memory)
        outcome.processes_seen = max(outcome.processes_seen, use.processes)
        if policy.seconds is not None and now - self.started > policy.seconds:
            outcome.timed_out = True
        elif policy.memory_bytes is not None and use.memory > policy.memory_bytes:
            outcome.out_of_memory = True
        elif policy.processes is not None and use.processes > policy.processes:
            outcome.violations.append(f"{use.processes} processes at one time, the limit is {policy.processes}")
        elif policy.processes is not None and use.threads > policy.processes + THREAD_ROOM:
            outcome.violations.append(
                f"{use.threads} threads at one time, the limit is {policy.processes + THREAD_ROOM}"
            )
        elif policy.file_bytes is not None and use.disk > policy.file_bytes:
            outcome.violations.append(f"{use.disk} bytes written to disk, the limit is {policy.file_bytes}")
        else:
            return False
        return True

    def _ended(self) -> bool:
        """Whether the child is gone. Without namespaces it is ours to reap; with them its init told us how it ended."""
        while True:
            try:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return True
            if pid == 0:
                return False
            if pid != self.direct:
                continue
            self.direct = -1
            data = os.read(self.status_fd, STATUS.size) if self.policy.isolation == "namespaces" else b""
            peak = usage.ru_maxrss
            if len(data) == STATUS.size:
                status, peak = STATUS.unpack(data)
            self.status = status
            self.outcome.peak_memory = max(self.outcome.peak_memory, self.tree.own_share(peak * 1024))
            return True

    def _finish(self) -> None:
        outcome = self.outcome
        self.kill_all()
        # A child that ended at once may have been reaped before its first words were read.
        with contextlib.suppress(OSError):
            self.line.setblocking(False)
            while self._hear():
                pass
        status = getattr(self, "status", None)
        if status is not None and not (outcome.timed_out or outcome.out_of_memory):
            code = os.waitstatus_to_exitcode(status)
            outcome.code, outcome.signal = (code, None) if code >= 0 else (None, -code)
            if outcome.signal == signal.SIGSYS:
                outcome.violations.append("a forbidden system call (killed by the filter)")
        else:
            outcome.signal = signal.SIGKILL
        self.output.drain(self.out_fd)
        outcome.output = self.output.text()
        outcome.seconds = time.monotonic() - self.started
        self.send(outcome.to_json())

    def kill_all(self) -> None:
        """End every descendant. With namespaces the kernel does it when their init dies; else until none is left."""
        spaces = self.policy.isolation == "namespaces"
        if self.direct > 0:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.direct, signal.SIGKILL)
        while True:
            if not spaces:
                self.tree.kill_descendants()
            try:
                # With namespaces there is one to wait for, else as many as have died meanwhile.
                pid, status, _ = os.wait4(-1, 0 if spaces else os.WNOHANG)
                while pid:
                    if pid == self.direct and not spaces:
                        self.status = status
                    pid, status, _ = os.wait4(-1, os.WNOHANG)
            except ChildProcessError:
                return
            time.sleep(_KILL_AGAIN_SECONDS)

    def send(self, value: object) -> None:
        body = json.dumps(value).encode()
        with contextlib.suppress(OSError):
            self.control.sendall(_LENGTH.pack(len(body)) + body)


def _read_ancillary(ancillary: list[tuple[int, int, bytes]]) -> tuple[int, list[int]]:
    sender, fds = 0, list[int]()
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            fds += struct.unpack(f"={len(data) // 4}i", data[: len(data) // 4 * 4])
        elif level == socket.SOL_SOCKET and kind == socket.SCM_CREDENTIALS:
            sender = struct.unpack_from("=i", data)[0]
    return sender, fds
