"""What the children of the nursery tests run."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

from tools.channel import receive_json, send_json
from tools.nursery import Nursery
from tools.sandbox import lock_down


def echo(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    send_json(sock, args)
    send_json(sock, receive_json(sock, timeout=60))


def describe(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """What of its starter a child could get at."""
    seen = dict(os.environ) | {"/proc": Path("/proc/self/environ").read_text(errors="replace")}
    open_fds = sorted(int(entry.name) for entry in Path("/proc/self/fd").iterdir())
    send_json(sock, {"environment": seen, "fds": open_fds, "torch": "torch" in sys.modules})


def write_to_fds(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    for number, fd in enumerate(fds):
        os.write(fd, f"fd {number}".encode())


def end(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Ways to end."""
    how = args["how"]
    if args.get("locked"):
        lock_down()
    if how == "exit":
        os._exit(7)
    if how == "SystemExit":
        sys.exit(3)
    if how == "exception":
        raise RuntimeError("a reason to read")
    if how == "segfault":
        ctypes.string_at(0)
    if how == "abort":
        os.abort()
    if how == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if how == "hang":
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, signal.SIG_IGN)
        send_json(sock, "hanging")
        while True:
            time.sleep(100)


def hang_with_descendants(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """A trusted child with grandchildren in other sessions and process groups."""
    for session in (False, True):
        subprocess.Popen(["sleep", "1000"], start_new_session=session)
    if os.fork() == 0 and os.fork() == 0:
        os.setsid()
        while True:
            time.sleep(100)
    send_json(sock, "hanging")
    while True:
        time.sleep(100)


def flood_channel(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    lock_down()
    for _ in range(64):
        sock.sendall(b"correct\n" * (1 << 17))


def flood_output(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    lock_down()
    os.write(1, b"the head\n")
    for _ in range(64):
        sys.stdout.write("correct\n" * (1 << 17))
    sys.stdout.flush()
    os.write(2, b"the tail")


def judge(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Spawn a sandboxed worker from within a child and talk with it."""
    nursery = Nursery.attach(args["nursery_fd"])
    with nursery.spawn("tests.nursery.nursery_targets:echo", {"from": "judge"}, sandboxed=True) as worker:
        first = receive_json(worker.sock, timeout=60)
        send_json(worker.sock, "ping")
        second = receive_json(worker.sock, timeout=60)
        status = worker.wait(60)
    send_json(sock, {"heard": [first, second], "code": status and status.code, "level": nursery.level})


def judge_that_dies(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    nursery = Nursery.attach(args["nursery_fd"])
    worker = nursery.spawn("tests.nursery.nursery_targets:end", {"how": "hang"}, sandboxed=True)
    receive_json(worker.sock, timeout=60)
    send_json(sock, worker.pid)
    os.kill(os.getpid(), signal.SIGKILL)


def search_memory(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """How often its own memory holds a word that it is told only in two halves."""
    first, second = (half.encode() for half in args["halves"])
    found = 0
    with Path("/proc/self/mem").open("rb", buffering=0) as memory:
        for line in Path("/proc/self/maps").read_text().splitlines():
            span, access = line.split()[:2]
            start, end = (int(address, 16) for address in span.split("-"))
            if access[0] != "r" or "[v" in line or end - start > 1 << 30:
                continue
            memory.seek(start)
            data = memory.read(end - start)
            found += sum(data[m.end() : m.end() + len(second)] == second for m in re.finditer(first, data))
    send_json(sock, found)


def threads(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Threads of Python and of OpenMP, begun before and after the filter."""
    import torch

    torch.set_num_threads(2)
    x = torch.rand(256, 256, dtype=torch.float64)
    before = x @ x
    lock_down()
    done: list[int] = []
    workers = [threading.Thread(target=done.append, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    torch.set_num_threads(3)
    torch.rand(1 << 20).exp().sum()
    tasks = len(list(Path("/proc/self/task").iterdir()))
    send_json(sock, {"done": sorted(done), "same": bool(torch.equal(x @ x, before)), "tasks": tasks})


def honest(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Things that honest code and its libraries do, which must not look like an attack."""
    import getpass
    import tempfile

    import torch

    lock_down()
    getpass.getuser()
    Path.home()
    Path(tempfile.gettempdir()).resolve().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "a" / "b").mkdir(parents=True)
        (Path(folder) / "a" / "b" / "c").write_text("text")
        (Path(folder) / "a" / "b" / "c").rename(Path(folder) / "d")
    Path("/").mkdir(exist_ok=True)
    Path("/dev/null").write_text("nothing")
    Path("/proc/cpuinfo").read_text()
    torch.nn.Linear(64, 64)(torch.rand(8, 64)).sum().backward()
    torch.manual_seed(0)
    ctypes.CDLL(None).sched_yield()
    os.kill(os.getpid(), 0)
    send_json(sock, "done")
