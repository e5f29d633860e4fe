"""What a child and its descendants use, read from /proc."""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass

from tools.sandbox.policy import Policy

_DISK_EVERY = 10
_DISK_ENTRIES = 20_000


@dataclass
class Use:
    """Memory in bytes: private pages, and the larger of mapped and existing shared ones. Disk in bytes added."""

    memory: int
    processes: int
    disk: int


class Tree:
    """The processes below one warden. With namespaces they are read through the namespace's own /proc."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.inherited = _anonymous_bytes("/proc/self/status", None)
        self.proc: int | None = None
        self.private: list[int] = []
        self.looks = 0
        self.disk = 0
        self.disk_before = self._written()

    def see_through(self, fds: list[int]) -> None:
        """Take the descriptors that the init sent: its /proc, then its private file systems."""
        self.proc, self.private = fds[0], fds[1:]

    def own_share(self, peak: int) -> int:
        """A process's peak resident size without what it got by being forked from us. A bound, not a measurement."""
        return 0 if self.policy.isolation == "none" else max(0, peak - _resident_bytes())

    def measure(self, direct: int) -> Use:
        """One look at everything. `direct` is the warden's own child."""
        private = shared = count = 0
        for pid in self._pids(direct):
            status = _read(f"{pid}/status", self.proc) if self.proc is not None else _read(f"/proc/{pid}/status", None)
            if b"\nState:\tZ" in status or not status:
                continue
            count += 1
            anonymous = _field(status, b"RssAnon")
            # Pages shared with us since the fork are in each child's figure and cost nothing.
            private += max(0, anonymous - self.inherited) if self._is_fork(status) else anonymous
            shared += _field(status, b"RssShmem")
        held = sum(_used(fd) for fd in self.private)
        if self.looks % _DISK_EVERY == 0:
            self.disk = max(0, self._written() - self.disk_before)
        self.looks += 1
        return Use(private + max(shared, held), count, self.disk)

    def descendants(self, root: int) -> list[int]:
        """All processes below `root`, in the pid namespace of this process."""
        parents: dict[int, list[int]] = {}
        for pid in _processes("/proc"):
            parents.setdefault(_parent(_read(f"/proc/{pid}/stat", None)), []).append(pid)
        found, waiting = list[int](), [root]
        while waiting:
            children = parents.get(waiting.pop(), [])
            found += children
            waiting += children
        return found

    def _pids(self, direct: int) -> list[int]:
        if self.policy.isolation != "namespaces":
            return self.descendants(os.getpid())
        if self.proc is None:
            return []
        return [pid for pid in _processes(self.proc) if pid != 1]

    def _is_fork(self, status: bytes) -> bool:
        """Whether a process still runs the image it was forked with: it maps at least as much as it inherited."""
        return _field(status, b"VmSize") >= _own_size()

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


def _processes(proc: str | int) -> list[int]:
    try:
        with os.scandir(proc) as entries:
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
    start = status.find(b"\n" + name + b":")
    return int(status[start + len(name) + 2 :].split(None, 1)[0]) * 1024 if start >= 0 else 0


def _parent(stat: bytes) -> int:
    # The command name before it may hold spaces and brackets: the fields begin after the last bracket.
    return int(stat[stat.rindex(b")") + 2 :].split()[1]) if stat else -1


def _anonymous_bytes(path: str, folder: int | None) -> int:
    return _field(_read(path, folder), b"RssAnon")


def _resident_bytes() -> int:
    return _field(_read("/proc/self/status", None), b"VmRSS")


def _own_size() -> int:
    return _field(_read("/proc/self/status", None), b"VmSize")


def _used(fd: int) -> int:
    try:
        figures = os.fstatvfs(fd)
    except OSError:
        return 0
    return (figures.f_blocks - figures.f_bfree) * figures.f_frsize
