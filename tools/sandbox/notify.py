"""The supervisor of a child's system-call filter: it sees what was tried, writes it down in words, and refuses.

It answers for calls that the filter in `tools.sandbox.filter` hands over; nothing else of the child is slowed down.
"""

from __future__ import annotations

import errno
import fcntl
import os
import socket
import struct
from pathlib import Path

from tools.sandbox.calls import PATH_CALLS, name_of
from tools.sandbox.policy import Policy

_RECEIVE = 0xC0502100
_SEND = 0xC0182101
_STILL_VALID = 0x40082102
_CONTINUE = 1
_NOTICE = struct.Struct("=QIIiIQ6Q")
_REPLY = struct.Struct("=QqiI")
_AT_FDCWD = -100
_MOST_VIOLATIONS = 64
_PATH_MAX = 4096
_FREE_AREAS = ("/tmp", "/dev", "/proc")


class Supervisor:
    """Answers one filter's listener."""

    def __init__(self, listener: int, policy: Policy) -> None:
        self.listener = listener
        # Read-only mounts refuse by themselves, and cannot be raced as a look at a path can.
        self.write_refusal = 0 if policy.isolation == "namespaces" else errno.EACCES
        # The innermost folder decides: a folder that is shown in the private /tmp is not to be written to.
        areas = dict.fromkeys((os.path.realpath(p) for p in policy.readable), False)
        areas |= dict.fromkeys(_FREE_AREAS, True)
        areas |= dict.fromkeys((os.path.realpath(p) for p in policy.writable), True)
        self.areas = sorted(areas.items(), key=lambda area: -len(area[0]))

    def answer(self, violations: list[str]) -> bool:
        """Answer the call that waits and add to `violations` what it was. False when no filter is left."""
        buffer = bytearray(_NOTICE.size)
        try:
            fcntl.ioctl(self.listener, _RECEIVE, buffer)
        except OSError as error:
            return error.errno in (errno.ENOENT, errno.EINTR)
        identity, pid, _, number, _, _, *arguments = _NOTICE.unpack(buffer)
        name = name_of(number)
        refusal, words = errno.EPERM, _describe(name, arguments)
        if name in PATH_CALLS:
            path = self._path(pid, name, arguments)
            if path is None or self._is_harmless(name, path):
                self._reply(identity, 0)
                return True
            refusal, words = self.write_refusal, f"write attempt: {name}({path!r})"
        if self._is_valid(identity) and words not in violations and len(violations) < _MOST_VIOLATIONS:
            violations.append(words)
        self._reply(identity, refusal)
        return True

    def _is_harmless(self, name: str, path: str) -> bool:
        """Within what it may write, or without effect: making a folder that exists, removing what does not."""
        if next((free for area, free in self.areas if path == area or path.startswith(area + "/")), False):
            return True
        if name.startswith("mkdir"):
            return os.path.lexists(path)
        return name in ("truncate", "unlink", "unlinkat", "chmod", "fchmodat") and not os.path.lexists(path)

    def _reply(self, identity: int, refusal: int) -> None:
        """Let the call go on (0) or make it fail with an error number."""
        reply = _REPLY.pack(identity, 0, -refusal, 0 if refusal else _CONTINUE)
        try:
            fcntl.ioctl(self.listener, _SEND, reply)
        except OSError:
            pass  # the caller has died meanwhile

    def _is_valid(self, identity: int) -> bool:
        try:
            fcntl.ioctl(self.listener, _STILL_VALID, struct.pack("=Q", identity))
        except OSError:
            return False
        return True

    def _path(self, pid: int, name: str, arguments: list[int]) -> str | None:
        """The path that a call names, made absolute; None where it cannot be read (the call will fail by itself)."""
        folder_at, path_at = PATH_CALLS[name]
        folder = _signed(arguments[folder_at]) if folder_at >= 0 else _AT_FDCWD
        process = Path(f"/proc/{pid}")
        try:
            with (process / "mem").open("rb", buffering=0) as memory:
                text = _read_string(memory.fileno(), arguments[path_at])
            base = (process / ("cwd" if folder == _AT_FDCWD else f"fd/{folder}")).readlink()
        except (OSError, ValueError):
            return None
        return os.path.normpath(base / os.fsdecode(text))


def _signed(argument: int) -> int:
    """The int in the low half of an argument."""
    return struct.unpack("=i", struct.pack("=I", argument & 0xFFFFFFFF))[0]


def _read_string(memory: int, address: int) -> bytes:
    # Page by page: the next one may not be mapped.
    data = b""
    while len(data) < _PATH_MAX and b"\0" not in data:
        page = os.pread(memory, 4096 - (address + len(data)) % 4096, address + len(data))
        if not page:
            break
        data += page
    return data.split(b"\0", 1)[0]


def _describe(name: str, arguments: list[int]) -> str:
    if name == "socket":
        try:
            family = socket.AddressFamily(arguments[0]).name
        except ValueError:
            family = str(arguments[0])
        return f"network attempt: socket({family})"
    if name in ("kill", "tgkill", "tkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo"):
        return f"signal attempt: {name}({_signed(arguments[0])}, {_signed(arguments[1])})"
    if name in ("fork", "vfork", "clone"):
        return f"process attempt: {name}"
    if name in ("execve", "execveat"):
        return f"program attempt: {name}"
    return f"forbidden call: {name}"
