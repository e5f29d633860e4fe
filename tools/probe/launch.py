"""The process that becomes the warden of an instrument: `python -I -S launch.py FD`, with the request on the socket FD.

Like `tools.sandbox.launch`, but for three things: the program may use sockets, its network namespace has a loopback,
and where counters are asked for it keeps CAP_PERFMON, for which it has to stay in the machine's own user namespace.
"""

from __future__ import annotations

import ctypes
import os
import signal
import socket
import struct
import sys
import types
from pathlib import Path
from typing import NoReturn

CAP_PERFMON = 38
_SIOCSIFFLAGS = 0x8914
_IFF_UP = 1
_PR_CAP_AMBIENT_RAISE = 2


def main(fd: int) -> None:
    package = types.ModuleType("tools.sandbox")
    package.__path__ = [str(Path(__file__).parents[1] / "sandbox")]
    sys.modules["tools.sandbox"] = package
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tools.channel import receive_json
    from tools.sandbox import isolation, linux, warden
    from tools.sandbox.policy import Policy

    control = socket.socket(fileno=fd)
    request = receive_json(control, timeout=30)
    argv, out, err = request["argv"], request["stdout"], request["stderr"]
    drop_all = linux.drop_privileges

    def drop() -> None:
        """In place of `linux.drop_privileges`, at the last moment at which there are privileges."""
        _raise_loopback()
        if request["counters"]:
            _drop_all_but_counters(linux)
        else:
            drop_all()

    linux.drop_privileges = drop
    if request["counters"]:
        # The driver asks for the capability in the first user namespace, so there can be no other.
        warden.NAMESPACES &= ~linux.CLONE_NEWUSER
        isolation._map_user = lambda _uid, _gid: None

    def run_program(line: int) -> NoReturn:
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, line)
        os.closerange(line + 1, 1 << 20)
        try:
            os.chdir(request["cwd"])
            _filter_calls(line)
            os.execvpe(argv[0], argv, request["env"])
        except OSError as error:
            os.write(2, f"{argv[0]}: {error}\n".encode())
            os._exit(127)

    os.setsid()
    warden.watch(Policy.from_json(request["policy"]), control, run_program, {out, err})


def _raise_loopback() -> None:
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sH22x", b"lo", _IFF_UP))


def _drop_all_but_counters(linux: types.ModuleType) -> None:
    """As `linux.drop_privileges`, but CAP_PERFMON stays, also across exec."""
    for capability in range(64):
        if capability != CAP_PERFMON:
            try:
                linux.prctl(linux._PR_CAPBSET_DROP, capability)
            except OSError:
                break
    linux.prctl(linux._PR_CAP_AMBIENT, linux._PR_CAP_AMBIENT_CLEAR_ALL)
    linux.prctl(linux._PR_SET_SECUREBITS, linux._SECUREBITS)
    high = 1 << (CAP_PERFMON - 32)
    # Effective, permitted, inheritable: first for capabilities 0 to 31, then for 32 to 63.
    wanted = (ctypes.c_uint32 * 6)(0, 0, 0, high, high, high)
    header = (ctypes.c_uint32 * 2)(linux._CAPABILITY_VERSION_3, 0)
    linux.syscall(linux.SYS_CAPSET, ctypes.byref(header), ctypes.byref(wanted))
    linux.prctl(linux._PR_CAP_AMBIENT, _PR_CAP_AMBIENT_RAISE, CAP_PERFMON)
    linux.prctl(linux._PR_SET_NO_NEW_PRIVS, 1)


def _filter_calls(line: int) -> None:
    """The filter of a compiler, with sockets: in a network of one's own they lead nowhere."""
    from tools.sandbox import filter as calls

    allowed = calls._step(calls._LOAD, calls._NUMBER_AT)
    allowed += b"".join(calls._when("socket", [calls._step(calls._RETURN, calls._ALLOW)]))
    flags = calls._FLAGS | calls._FLAG_TSYNC_ESRCH | calls._FLAG_NEW_LISTENER
    listener = calls._install(allowed + calls._program(None, calls._NOTIFY), flags)
    if listener is None:
        if calls._install(allowed + calls._program(None, calls._KILL_PROCESS), calls._FLAGS) is None:
            raise OSError(ctypes.get_errno(), "this kernel takes no system-call filter")
        return
    with socket.socket(fileno=os.dup(line)) as channel:
        socket.send_fds(channel, [b"listener"], [listener])
    os.close(listener)
    os.close(line)


if __name__ == "__main__":
    main(int(sys.argv[1]))
