"""What a child gives up before it runs anything: its view of the machine, its privileges, its share of resources."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import struct
from typing import NoReturn

from tools.sandbox import linux, mounts
from tools.sandbox.policy import THREAD_ROOM, Policy

NAMESPACES = (
    linux.CLONE_NEWUSER
    | linux.CLONE_NEWPID
    | linux.CLONE_NEWNET
    | linux.CLONE_NEWIPC
    | linux.CLONE_NEWNS
    | linux.CLONE_NEWUTS
)
# How the init tells of the child's end: its wait status, and its peak resident size in KiB.
STATUS = struct.Struct("=iq")


def become_init(policy: Policy, user: tuple[int, int], line: int, status: int) -> None:
    """In the first process of new namespaces: set the view up and fork the child, in which this returns.

    The caller stays behind as pid 1 and tells on the descriptor `status` how the child ended. `user` are the uid and
    gid from before, when they could still be asked for. `line` gets descriptors through which the warden can see in.
    """
    linux.die_with_parent(signal.SIGKILL)
    linux.set_dumpable(True)  # else a user's own /proc/self/uid_map is not theirs to write
    _map_user(*user)
    linux.sethostname("sandbox")
    views = mounts.build_view(policy)
    _limit_pids(policy)
    mounts.seal_proc()
    with socket.socket(fileno=os.dup(line)) as channel:
        socket.send_fds(channel, [b"tree"], views)
    for fd in views:
        os.close(fd)
    hold_back(policy)
    linux.die_with_parent(signal.SIGKILL)  # a change of credentials has cleared it
    child = os.fork()
    if child:
        linux.set_dumpable(False)
        _reap_until_the_end_of(child, status)


def _reap_until_the_end_of(child: int, status_fd: int) -> NoReturn:
    """The life of an init process: reap whatever dies, and tell how the child ended. Its own end kills the rest."""
    linux.close_all_but({status_fd})
    while True:
        gone, status, usage = os.wait4(-1, 0)
        if gone == child:
            os.write(status_fd, STATUS.pack(status, usage.ru_maxrss))
            os._exit(0)


def hold_back(policy: Policy) -> None:
    """Resource limits and no privileges. Nothing for our own trusted children."""
    if policy.isolation == "none":
        return
    linux.drop_privileges()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    wanted = {
        resource.RLIMIT_FSIZE: policy.file_bytes,
        resource.RLIMIT_NOFILE: policy.open_files,
        resource.RLIMIT_NPROC: policy.processes and policy.processes + THREAD_ROOM,
    }
    for which, value in wanted.items():
        if value is not None:
            hard = resource.getrlimit(which)[1]
            value = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(which, (value, value))


def _map_user(uid: int, gid: int) -> None:
    """Be the same user inside: what was readable stays readable, and new files belong to the one who runs us."""
    for name, text in (("setgroups", "deny"), ("uid_map", f"{uid} {uid} 1"), ("gid_map", f"{gid} {gid} 1")):
        fd = os.open(f"/proc/self/{name}", os.O_WRONLY)
        try:
            os.write(fd, text.encode())
        finally:
            os.close(fd)


def kernel_release() -> tuple[int, int]:
    """Such as `(6, 18)`."""
    major, minor = re.findall(r"\d+", os.uname().release)[:2]
    return int(major), int(minor)


def _limit_pids(policy: Policy) -> None:
    """Since Linux 6.14 a pid namespace has a limit of its own; before, the file is the whole machine's, and the
    warden's polling must do."""
    if policy.processes is None or kernel_release() < (6, 14):
        return
    try:
        fd = os.open("/proc/sys/kernel/pid_max", os.O_WRONLY)
    except OSError:
        return
    try:
        os.write(fd, str(max(301, policy.processes + THREAD_ROOM)).encode())
    except OSError:
        pass
    finally:
        os.close(fd)
