"""What a child and its descendants use, read from /proc."""

from __future__ import annotations

import contextlib
import os
import signal
from dataclasses import dataclass

from tools.sandbox.policy import Policy

_FILES_EVERY = 4
_DISK_EVERY = 10
_DISK_ENTRIES = 20_000


@dataclass
class Use:
    """Memory in bytes: private pages, and the larger of mapped and existing shared ones. Disk in bytes added."""

    memory: int
    processes: int
    threads: int
    disk: int


class Tree:
    """The processes below one warden. With namespaces they are read through the namespace's own /proc.

    `given` are descriptors that the child gets: shared memory behind them is its owner's and is not counted.
    """

    def __init__(self, policy: Policy, given: set[int]) -> None:
        self.policy = policy
        own = _read("/proc/self/status", None)
        self.inherited, self.resident, self.size = (_field(own, n) for n in (b"RssAnon", b"VmRSS", b"VmSize"))
        self.given = {(s.st_dev, s.st_ino): s.st_size for s in map(os.fstat, given)}
        self.proc: int | None = None
        self.private: list[int] = []
        self.looks = 0
        self.disk = self.unmapped = 0
        self.disk_before = self._written()

    def see_through(self, fds: list[int]) -> None:
        """Take the descriptors that the init sent: its /proc, then its private file systems."""
        self.proc, self.private = fds[0], fds[1:]

    def own_share(self, peak: int) -> int:
        """A process's peak resident size without what it got by being forked from us. A bound, not a measurement."""
        return 0 if self.policy.isolation == "none" else max(0, peak - self.resident)

    def measure(self) -> Use:
        """One look at everything; at the dearer things only now and then."""
        private = shared = count = threads = 0
        pids = self._pids()
        if self.policy.processes is not None and len(pids) > 2 * self.policy.processes:
            return Use(0, len(pids), 0, 0)  # no time to lose: they are becoming more meanwhile
        for pid in pids:
            status = _read(*self._place(pid, "status"))
            if not status or b"\nState:\tZ" in status:
                continue
            count += 1
            anonymous = _field(status, b"RssAnon")
            # A fork that runs what we run maps at least as much, and pages that it shares with us cost nothing.
            private += max(0, anonymous - self.inherited) if _field(status, b"VmSize") >= self.size else anonymous
            private += _field(status, b"HugetlbPages")
            shared += _field(status, b"RssShmem")
            threads += _number(status, b"Threads")
        if self.looks % _FILES_EVERY == 0:
            self.unmapped = self._in_memory_files(pids)
        if self.looks % _DISK_EVERY == 0:
            self.disk = max(0, self._written() - self.disk_before)
        self.looks += 1
        shared = max(0, shared - sum(self.given.values()))
        held = sum(_used(fd) for fd in self.private) + self.unmapped
        return Use(private + max(shared, held), count, threads, self.disk)

    def kill_descendants(self) -> None:
        """Send SIGKILL to all below this process: to whole groups, since those cannot fork faster than they die."""
        below = _descendants(os.getpid())
        for group in {group for _, group in below} - {os.getpgrp()}:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, signal.SIGKILL)
        for pid, _ in below:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)

    def _pids(self) -> list[int]:
        if self.policy.isolation != "namespaces":
            return [pid for pid, _ in _descendants(os.getpid())]
        return [] if self.proc is None else [pid for pid in _numbered(self.proc) if pid != 1]

    def _place(self, pid: int, name: str) -> tuple[str, int | None]:
        """A file of a process in the /proc that its pid is from."""
        return (f"/proc/{pid}/{name}", None) if self.proc is None else (f"{pid}/{name}", self.proc)

    def _in_memory_files(self, pids: list[int]) -> int:
        """Bytes in memfds that are open: they need not be mapped to take memory."""
        found: dict[tuple[int, int], int] = {}
        for pid in pids:
            path, folder = self._place(pid, "fd")
            with contextlib.suppress(OSError):
                table = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder)
                try:
                    for fd in _numbered(table):
                        with contextlib.suppress(OSError):
                            if os.readlink(str(fd), dir_fd=table).startswith("/memfd:"):
                                status = os.stat(str(fd), dir_fd=table)
                                found[status.st_dev, status.st_ino] = status.st_blocks * 512
                finally:
                    os.close(table)
        return sum(size for key, size in found.items() if key not in self.given)

    def _written(self) -> int:
        """Bytes allocated to files in the writable folders."""
        total, waiting, seen = 0, list(self.policy.writable), 0
        while waiting and seen < _DISK_ENTRIES:
            with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    seen += 1
                    with contextlib.suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(entry.path)
                        total += entry.stat(follow_symlinks=False).st_blocks * 512
        return total


def _numbered(folder: str | int) -> list[int]:
    try:
        with os.scandir(folder) as entries:
            return [int(entry.name) for entry in entries if entry.name.isdigit()]
    except OSError:
        return []


def _read(path: str, folder: int | None) -> bytes:
    try:
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    except OSError:
        return b""
    try:
        return os.read(fd, 8192)
    except OSError:
        return b""
    finally:
        os.close(fd)


def _field(status: bytes, name: bytes) -> int:
    """A size from a status file, in bytes."""
    return _number(status, name) * 1024


def _number(status: bytes, name: bytes) -> int:
    start = status.find(b"\n" + name + b":")
    return int(status[start + len(name) + 2 :].split(None, 1)[0]) if start >= 0 else 0


def _descendants(root: int) -> list[tuple[int, int]]:
    """All that live below `root`, as pid and process group, in the pid namespace of this process."""
    children: dict[int, list[tuple[int, int]]] = {}
    for pid in _numbered("/proc"):
        stat = _read(f"/proc/{pid}/stat", None)
        if stat:
            # The command name may hold spaces and brackets: the fields begin after the last bracket.
            state, parent, group = stat[stat.rindex(b")") + 2 :].split(None, 3)[:3]
            if state not in b"ZX":
                children.setdefault(int(parent), []).append((pid, int(group)))
    found, waiting = list[tuple[int, int]](), [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [pid for pid, _ in below]
    return found


def _used(fd: int) -> int:
    try:
        figures = os.fstatvfs(fd)
    except OSError:
        return 0
    return (figures.f_blocks - figures.f_bfree) * figures.f_frsize
