"""The system-call filter that a child puts over itself before it runs a candidate.

Threads, memory, files and devices go on as ever. Making processes, running programs, sockets, signals to others,
looking into others and changing the machine are refused, and the warden writes down each attempt.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import socket
import struct

from tools.sandbox import linux
from tools.sandbox.calls import NUMBERS, PATH_CALLS

_ARCHITECTURE = 0xC000003E if linux.MACHINE == "x86_64" else 0xC00000B7
_X32_BIT = 0x40000000

_LOAD, _AND, _RETURN = 0x20, 0x54, 0x06
_JUMP_EQUAL, _JUMP_GREATER_EQUAL = 0x15, 0x35
_NUMBER_AT, _ARCHITECTURE_AT, _ARGUMENTS_AT = 0, 4, 16

_ALLOW = 0x7FFF0000
_ERRNO = 0x00050000
_NOTIFY = 0x7FC00000
_KILL_PROCESS = 0x80000000
_EPERM = 1
_ENOSYS = 38

_SET_MODE_FILTER = 1
_FLAG_TSYNC = 1
_FLAG_NEW_LISTENER = 8
_FLAG_TSYNC_ESRCH = 16
# Without it a filtered process runs slower on kernels before 5.16 (speculative store bypass), and its timings with it.
_FLAG_SPEC_ALLOW = 4
_FLAGS = _FLAG_TSYNC | _FLAG_SPEC_ALLOW

_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC
# Refused as if the kernel had never heard of them: there are older calls that callers fall back to, or no need at all.
_UNKNOWN = ("clone3", "openat2", "shmget", "msgget", "semget", "mq_open")
_TO_SELF = ("kill", "tgkill", "rt_sigqueueinfo", "rt_tgsigqueueinfo")
_PROCESSES = ("fork", "vfork", "execve", "execveat", "tkill", "pidfd_open", "pidfd_send_signal")
# AF_UNIX and AF_NETLINK: the C library tries them for user names and interfaces. Refused, but no sign of ill will.
_QUIET_FAMILIES = (1, 16)
_HANDLED = {*_UNKNOWN, "clone", *_TO_SELF, *PATH_CALLS, "madvise", "fallocate"}
# Both take pages out of memory that is shared: who touches them next, in whatever process, waits for new ones.
_MADV_REMOVE = 9
_PUNCH_HOLE = 2
_BY_FLAGS = {"open": 1, "openat": 2}

_line: int | None = None
_trusted = False


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_char_p))


def arm(line: int | None) -> None:
    """Called in a child before its own code. `line` leads to the warden; None: it is one of ours and stays free."""
    global _line, _trusted
    _line, _trusted = line, line is None


def lock_down(*, programs: bool = False) -> None:
    """Forbid this process, all its threads and for good, what a candidate has no business with.

    To be called once, after CUDA contexts and thread pools are set up and before candidate code runs. With `programs`
    it may still run others (which are bound in the same way), as a compiler must. Without effect in a child that was
    spawned with `sandboxed=False`. Raises RuntimeError elsewhere and on a second call, OSError where the kernel has no
    filters.
    """
    global _line
    if _trusted:
        return
    if _line is None:
        raise RuntimeError("lock_down() works once, in a child of the nursery")
    line, _line = _line, None
    own_pid = None if programs else os.getpid()
    with socket.socket(fileno=line) as channel:
        listener = _install(_program(own_pid, _NOTIFY), _FLAGS | _FLAG_TSYNC_ESRCH | _FLAG_NEW_LISTENER)
        if listener is None:
            # Without supervision (before Linux 5.7) an attempt ends the process, which tells as much.
            if _install(_program(own_pid, _KILL_PROCESS), _FLAGS) is None:
                raise OSError(ctypes.get_errno(), "this kernel takes no system-call filter")
            return
        try:
            socket.send_fds(channel, [b"listener"], [listener])
        finally:
            os.close(listener)


def _install(program: bytes, flags: int) -> int | None:
    argument = _Program(len(program) // 8, program)
    with contextlib.suppress(OSError):
        return linux.syscall(linux.SYS_SECCOMP, _SET_MODE_FILTER, flags, ctypes.byref(argument))
    return None


def _program(own_pid: int | None, refuse: int) -> bytes:
    """The filter for the process `own_pid` (as it sees itself), or for one that may run programs (None).

    `refuse` is what happens to a forbidden call.
    """
    code = [
        _step(_LOAD, _ARCHITECTURE_AT),
        _step(_JUMP_EQUAL, _ARCHITECTURE, 1, 0),
        _step(_RETURN, _KILL_PROCESS),
        _step(_LOAD, _NUMBER_AT),
    ]
    if linux.MACHINE == "x86_64":
        code += [_step(_JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), _step(_RETURN, _KILL_PROCESS)]
    for name in _UNKNOWN:
        code += _when(name, [_step(_RETURN, _ERRNO | _ENOSYS)])
    for family in _QUIET_FAMILIES:
        code += _when("socket", _if_equal(0, family, _ERRNO | _EPERM))
    if own_pid is not None:
        # A thread is a clone that stays in its process.
        code += _when("clone", _if_any_bit(0, linux.CLONE_THREAD, _ALLOW, refuse))
        for name in _TO_SELF:
            code += _when(name, [*_if_equal(0, own_pid, _ALLOW), _step(_RETURN, refuse)])
        code += _when("madvise", _if_equal(2, _MADV_REMOVE, _ERRNO | _EPERM))
        code += _when("fallocate", _if_any_bit(1, _PUNCH_HOLE, _ERRNO | _EPERM, _ALLOW))
        watched = refuse if refuse == _NOTIFY else _ALLOW
        for name in PATH_CALLS:
            by_flags = _BY_FLAGS.get(name)
            rule = (
                [_step(_RETURN, watched)] if by_flags is None else _if_any_bit(by_flags, _WRITE_FLAGS, watched, _ALLOW)
            )
            code += _when(name, rule)
    for name in NUMBERS:
        if name not in _HANDLED and not (own_pid is None and name in _PROCESSES):
            code += _when(name, [_step(_RETURN, refuse)])
    code.append(_step(_RETURN, _ALLOW))
    return b"".join(code)


def _step(operation: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", operation, if_true, if_false, value & 0xFFFFFFFF)


def _when(name: str, block: list[bytes]) -> list[bytes]:
    """Run a block that returns for one call; nothing where this architecture lacks it."""
    return [_step(_JUMP_EQUAL, NUMBERS[name], 0, len(block)), *block] if name in NUMBERS else []


def _if_equal(argument: int, value: int, then: int) -> list[bytes]:
    """Return where an argument is `value`; else go on, with the call's number loaded again."""
    load = _step(_LOAD, _ARGUMENTS_AT + 8 * argument)
    return [load, _step(_JUMP_EQUAL, value, 0, 1), _step(_RETURN, then), _step(_LOAD, _NUMBER_AT)]


def _if_any_bit(argument: int, mask: int, then: int, otherwise: int) -> list[bytes]:
    load = _step(_LOAD, _ARGUMENTS_AT + 8 * argument)
    test = [_step(_AND, mask), _step(_JUMP_EQUAL, 0, 1, 0)]
    return [load, *test, _step(_RETURN, then), _step(_RETURN, otherwise)]
