"""Attacks that sandboxed children make in the tests: each is named, tried, and its outcome sent back."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import os
import signal
import socket
import stat
import subprocess
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.channel import send_json
from tools.sandbox import filter as call_filter
from tools.sandbox import lock_down
from tools.sandbox.calls import NUMBERS


def attempt(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Try one thing and send `[succeeded, what]`."""
    if args.get("locked", True):
        lock_down()
    try:
        reply = [True, ATTEMPTS[args["what"]](args)]
    except (OSError, MemoryError) as error:
        reply = [False, f"{type(error).__name__}: {error}"]
    send_json(sock, reply)


def _connect(args: dict[str, Any]) -> None:
    with socket.socket() as connection:
        connection.settimeout(5)
        connection.connect(("127.0.0.1", args["port"]))


def _connect_unix(args: dict[str, Any]) -> None:
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(args["path"])


def _fork(args: dict[str, Any]) -> None:
    if os.fork() == 0:
        os._exit(0)


def _run(args: dict[str, Any]) -> None:
    subprocess.run(["/bin/true"], check=True)


def _exec(args: dict[str, Any]) -> None:
    os.execv("/bin/true", ["true"])


def _spawn(args: dict[str, Any]) -> None:
    os.posix_spawn("/bin/true", ["true"], {})


def _call(args: dict[str, Any]) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(ctypes.c_long(NUMBERS[args["name"]]), *(ctypes.c_long(a) for a in args.get("with", [0] * 6)))
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result


def _punch(args: dict[str, Any]) -> list[int]:
    """Take a page out of shared memory, by both ways there are. Returns the errors and what the page then holds."""
    fd = os.memfd_create("shared")
    os.ftruncate(fd, 8192)
    shared = mmap.mmap(fd, 8192)
    shared[:8192] = b"x" * 8192
    library = ctypes.CDLL(None, use_errno=True)
    found: list[int] = []
    address = ctypes.addressof(ctypes.c_char.from_buffer(shared))
    library.madvise(ctypes.c_void_p(address), ctypes.c_size_t(4096), 9)
    found.append(ctypes.get_errno())
    ctypes.set_errno(0)
    library.fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(4096))
    found += [ctypes.get_errno(), shared[0]]
    ctypes.set_errno(0)
    library.fallocate(fd, 0, ctypes.c_long(0), ctypes.c_long(16384))
    found.append(ctypes.get_errno())
    return found


def _kill(args: dict[str, Any]) -> None:
    os.kill(args["pid"], signal.SIGTERM)


def _write(args: dict[str, Any]) -> None:
    Path(args["path"]).write_text("edited")


def _edit(args: dict[str, Any]) -> None:
    path = Path(args["path"])
    getattr(path, args["how"])(*args.get("with", []))


def _truncate(args: dict[str, Any]) -> None:
    os.truncate(args["path"], 0)


def _read(args: dict[str, Any]) -> str:
    return Path(args["path"]).read_bytes()[:1000].decode(errors="replace")


def _list(args: dict[str, Any]) -> list[str]:
    return sorted(p.name for p in Path(args["path"]).iterdir())


def _devices(args: dict[str, Any]) -> list[str]:
    modes = {str(p): p.lstat().st_mode for p in Path("/dev").rglob("*")}
    return sorted(p for p, mode in modes.items() if stat.S_ISBLK(mode) or stat.S_ISCHR(mode))


def _allocate(args: dict[str, Any]) -> int:
    data = bytearray(args["bytes"])
    step = mmap.PAGESIZE
    data[::step] = b"x" * len(data[::step])
    time.sleep(args.get("hold", 30))
    return len(data)


def _allocate_shared(args: dict[str, Any]) -> None:
    memory = mmap.mmap(-1, args["bytes"])
    for at in range(0, args["bytes"], mmap.PAGESIZE):
        memory[at] = 1
    time.sleep(30)


def _fill_memfd(args: dict[str, Any]) -> None:
    fds = [os.memfd_create("hoard") for _ in range(8)]
    for _ in range(args["bytes"] // len(fds) >> 20):
        for fd in fds:
            os.write(fd, b"x" * (1 << 20))
    time.sleep(30)


def _fill(args: dict[str, Any]) -> None:
    """Write `bytes` into files of a mebibyte each."""
    for number in range(args["bytes"] >> 20):
        (Path(args["path"]) / str(number)).write_bytes(b"x" * (1 << 20))
    time.sleep(args.get("hold", 0))


def _one_file(args: dict[str, Any]) -> None:
    with Path(args["path"]).open("wb") as stream:
        for _ in range(args["bytes"] >> 20):
            stream.write(b"x" * (1 << 20))


def _open_many(args: dict[str, Any]) -> None:
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(args["count"])]
    raise AssertionError(len(files))


def _status(args: dict[str, Any]) -> dict[str, str]:
    lines = (line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return {name: value.strip() for name, value in lines}


def _threads(args: dict[str, Any]) -> None:
    threading.stack_size(64 << 10)
    for _ in range(args["count"]):
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    time.sleep(60)


def _nothing(args: dict[str, Any]) -> None:
    return None


ATTEMPTS: dict[str, Callable[[dict[str, Any]], Any]] = {
    name.removeprefix("_"): value
    for name, value in list(globals().items())
    if name.startswith("_") and not name.startswith("__") and callable(value)
}


def insist(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Many forbidden things, each many times."""
    lock_down()
    for number in range(200):
        with contextlib.suppress(OSError):
            os.kill(1, 9)
        with contextlib.suppress(OSError):
            Path(f"/usr/{number}").touch()


def attempt_unsupervised(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """An attempt on a kernel that knows no listeners for filters."""
    install = call_filter._install

    def without_listeners(program: bytes, flags: int) -> int | None:
        return None if flags & call_filter._FLAG_NEW_LISTENER else install(program, flags)

    call_filter._install = without_listeners
    attempt(sock, args, fds)
