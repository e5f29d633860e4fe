"""The Linux system calls that Python does not wrap, by ctypes. Numbers for x86-64 and aarch64.

Everything here is called in single-threaded processes just after a fork, where subprocess and threads are out of place.
"""

from __future__ import annotations

import ctypes
import os
import platform

MACHINE = platform.machine()

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
CLONE_THREAD = 0x00010000

MS_RDONLY = 0x1
MS_NOSUID = 0x2
MS_NODEV = 0x4
MS_NOEXEC = 0x8
MS_REMOUNT = 0x20
MS_NOATIME = 0x400
MS_NODIRATIME = 0x800
MS_BIND = 0x1000
MS_REC = 0x4000
MS_PRIVATE = 0x40000
MS_RELATIME = 0x200000

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_CAPBSET_DROP = 24
_PR_SET_SECUREBITS = 28
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_CLEAR_ALL = 4
# NOROOT and NO_SETUID_FIXUP with their locks: being uid 0 gives no capability, now or after an exec.
_SECUREBITS = 0x0F
_CAPABILITY_VERSION_3 = 0x20080522

_AT_RECURSIVE = 0x8000
_MOUNT_ATTR_RDONLY = 0x1

SYS_CLONE = 56 if MACHINE == "x86_64" else 220
SYS_CAPSET = 126 if MACHINE == "x86_64" else 91
SYS_SECCOMP = 317 if MACHINE == "x86_64" else 277
SYS_MOUNT_SETATTR = 442

# The handle that keeps the interpreter lock: a fork in a call that had let go of it would come back without its owner.
_libc = ctypes.PyDLL(None, use_errno=True)
_syscall = _libc.syscall
_syscall.restype = ctypes.c_long
_python = ctypes.pythonapi


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def syscall(number: int, *args: object) -> int:
    """A system call whose arguments are ints, bytes, None or ctypes objects. Raises OSError."""
    converted = [ctypes.c_long(a) if isinstance(a, int) else a for a in args]
    return _check(int(_syscall(ctypes.c_long(number), *converted)), f"system call {number}")


def fork_into(namespaces: int) -> int:
    """`os.fork`, with the child born into new namespaces (`CLONE_NEW…`), as their first process.

    Raises OSError where the kernel refuses. The caller must be single-threaded.
    """
    _python.PyOS_BeforeFork()
    pid = int(_syscall(ctypes.c_long(SYS_CLONE), ctypes.c_long(namespaces | 17), None, None, None, None))
    number = ctypes.get_errno()
    if pid == 0:
        _python.PyOS_AfterFork_Child()
        return 0
    _python.PyOS_AfterFork_Parent()
    if pid < 0:
        raise OSError(number, f"clone into new namespaces: {os.strerror(number)}")
    return pid


def prctl(option: int, value: int = 0, third: int = 0) -> None:
    _check(
        int(_libc.prctl(option, ctypes.c_ulong(value), ctypes.c_ulong(third), ctypes.c_ulong(0), ctypes.c_ulong(0))),
        f"prctl({option})",
    )


def die_with_parent(signal_number: int) -> None:
    """Have the kernel send a signal to this process when its parent dies."""
    prctl(_PR_SET_PDEATHSIG, signal_number)


def adopt_orphans() -> None:
    """Descendants whose parent dies become this process's children."""
    prctl(_PR_SET_CHILD_SUBREAPER, 1)


def set_dumpable(value: bool) -> None:
    """Whether processes of the same user may look into this one (`/proc/<pid>/mem`, ptrace)."""
    prctl(_PR_SET_DUMPABLE, int(value))


def drop_privileges() -> None:
    """Give up every capability for good, also across exec and for uid 0."""
    for capability in range(64):
        try:
            prctl(_PR_CAPBSET_DROP, capability)
        except OSError:
            break
    for option, value in ((_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL), (_PR_SET_SECUREBITS, _SECUREBITS)):
        try:
            prctl(option, value)
        except OSError:
            pass  # without CAP_SETPCAP there is nothing to give up here
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION_3, 0)
    syscall(SYS_CAPSET, ctypes.byref(header), ctypes.byref((ctypes.c_uint32 * 6)()))
    prctl(_PR_SET_NO_NEW_PRIVS, 1)


def mount(source: str, target: str, kind: str | None, flags: int, options: str = "") -> None:
    result = _libc.mount(
        source.encode(), os.fsencode(target), kind and kind.encode(), ctypes.c_ulong(flags), options.encode() or None
    )
    _check(int(result), f"mount {source} on {target}")


def set_mount_readonly(path: str, readonly: bool, *, recursive: bool = False) -> None:
    """Change the read-only flag of a mount and keep its other flags. Linux 5.12. Raises OSError."""
    wanted = (_MOUNT_ATTR_RDONLY, 0) if readonly else (0, _MOUNT_ATTR_RDONLY)
    attributes = (ctypes.c_uint64 * 4)(*wanted, 0, 0)
    syscall(
        SYS_MOUNT_SETATTR,
        -100,
        os.fsencode(path),
        _AT_RECURSIVE if recursive else 0,
        ctypes.byref(attributes),
        ctypes.sizeof(attributes),
    )


def sethostname(name: str) -> None:
    data = name.encode()
    _check(int(_libc.sethostname(data, ctypes.c_size_t(len(data)))), "sethostname")


def close_all_but(keep: set[int]) -> None:
    """Close every descriptor from 3 on that is not in `keep`."""
    low = 3
    for fd in sorted(k for k in keep if k >= 3):
        if low < fd:
            os.closerange(low, fd)
        low = fd + 1
    os.closerange(low, 1 << 20)
