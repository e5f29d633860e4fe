"""The nursery's process: wait for requests, fork a warden for each.

Single-threaded, so that forking is safe. It sees what a child may do, never what it is to do: the target and its
arguments go straight from the client to the child, so that nothing of one child is in the memory of the next.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import selectors
import shutil
import signal
import socket
from typing import Any, NoReturn

from tools.nursery import child
from tools.sandbox import linux
from tools.sandbox.policy import Policy
from tools.sandbox.warden import watch

MAX_REQUEST = 128 << 10
MAX_FDS = 250
_HEAVY_IMPORTS = ("numpy", "torch", "torch.utils.cpp_extension")


def serve(fd: int, parent: int, level: str) -> NoReturn:
    """Answer requests until the starter's connection closes or the starter dies."""

    def starter_gone(*_: object) -> None:
        # The signal also comes when only the thread that started us has ended.
        if os.getppid() != parent:
            _leave()

    signal.signal(signal.SIGUSR1, starter_gone)
    linux.die_with_parent(signal.SIGUSR1)
    starter_gone()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: _leave())
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # wardens are reaped by the kernel
    linux.set_dumpable(False)
    os.environ.pop("LD_PRELOAD", None)
    _import_heavy()
    # A collection in a child would touch, and so copy, every object that it shares with us.
    gc.collect()
    gc.freeze()
    _Server(socket.socket(fileno=fd), level).run()


def _import_heavy() -> None:
    """Import what children need, without a look at the GPU: the state that NVML or the driver would have in this
    process is no good to a child, where NVML then starts no more."""
    importlib.import_module("torch")
    import torch.cuda

    # Importing the extension builder asks whether CUDA is there, only to warn.
    asked, torch.cuda.is_available = torch.cuda.is_available, lambda: True
    try:
        for name in _HEAVY_IMPORTS:
            importlib.import_module(name)
    finally:
        torch.cuda.is_available = asked


def _leave() -> NoReturn:
    """End at once; the kernel tells the wardens, and each takes its child with it."""
    shutil.rmtree(os.environ["HOME"], ignore_errors=True)
    os._exit(0)


class _Server:
    def __init__(self, starter: socket.socket, level: str) -> None:
        self.greeting = json.dumps({"level": level}).encode()
        self.starter = starter
        self.selector = selectors.PollSelector()
        self.selector.register(starter, selectors.EVENT_READ)

    def run(self) -> NoReturn:
        try:
            self.starter.send(self.greeting)
        except OSError:
            _leave()  # the starter ended while torch was being imported
        while True:
            for key, _ in self.selector.select():
                connection = key.fileobj
                assert isinstance(connection, socket.socket)
                self._serve_one(connection)

    def _serve_one(self, connection: socket.socket) -> None:
        try:
            data, fds, _, _ = socket.recv_fds(connection, MAX_REQUEST, MAX_FDS)
        except ConnectionError:
            data, fds = b"", []
        if not data:
            if connection is self.starter:
                _leave()
            self.selector.unregister(connection)
            connection.close()
            return
        try:
            reply, passed = self._fork(json.loads(data), fds)
        except Exception as error:
            reply, passed = {"error": f"{type(error).__name__}: {error}"}, []
        try:
            socket.send_fds(connection, [json.dumps(reply).encode()], passed, socket.MSG_NOSIGNAL)
        except OSError:
            pass  # gone, which its end of the child's sockets tells the warden
        for fd in (*fds, *passed):
            os.close(fd)

    def _fork(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        """Fork one warden. Returns the reply and the client's ends of the child's sockets."""
        policy = Policy.from_json(request["policy"])
        ours, theirs = socket.socketpair()
        control, control_end = socket.socketpair()
        line_to_us: socket.socket | None = None
        if request["share_nursery"]:
            line_to_us, its_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            fds.append(its_end.detach())
        warden = os.fork()
        if warden == 0:
            self._become_warden(policy, control_end, theirs, fds, shared=line_to_us is not None)
        theirs.close()
        control_end.close()
        if line_to_us is not None:
            line_to_us.send(self.greeting)
            self.selector.register(line_to_us, selectors.EVENT_READ)
        return {"warden": warden}, [ours.detach(), control.detach()]

    def _become_warden(
        self, policy: Policy, control: socket.socket, sock: socket.socket, fds: list[int], *, shared: bool
    ) -> NoReturn:
        for number in (signal.SIGUSR1, signal.SIGTERM, signal.SIGCHLD):
            signal.signal(number, signal.SIG_DFL)
        os.setsid()
        kept = fds[:-1] if shared else fds
        nursery_fd = fds[-1] if shared else None

        def run_child(line: int) -> NoReturn:
            child.run(policy, sock, kept, nursery_fd, line)

        try:
            watch(policy, control, run_child, {sock.fileno(), *fds})
        finally:
            os._exit(1)
