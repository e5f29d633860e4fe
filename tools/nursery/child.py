"""What runs in a forked child before and after its target."""

from __future__ import annotations

import importlib
import os
import random
import signal
import socket
import sys
import traceback
from typing import Any, NoReturn

from tools.channel import receive_json
from tools.sandbox import filter as call_filter
from tools.sandbox.policy import Policy

MAX_ARGUMENTS = 64 << 20


def run(policy: Policy, sock: socket.socket, fds: list[int], nursery_fd: int | None, line: int) -> NoReturn:
    """Receive the target and its arguments, call it, and leave with 0, or 1 after an exception."""
    code = 1
    try:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.environ["HOME"] = os.environ["TMPDIR"] = "/tmp" if policy.isolation == "namespaces" else os.environ["HOME"]
        random.seed()
        if policy.isolation == "none":
            os.close(line)
            call_filter.arm(None)
        else:
            call_filter.arm(line)
        call = receive_json(sock, timeout=60, max_bytes=MAX_ARGUMENTS)
        args: dict[str, Any] = call["args"]
        if nursery_fd is not None:
            args["nursery_fd"] = nursery_fd
        module, _, function = call["target"].partition(":")
        getattr(importlib.import_module(module), function)(sock, args, fds)
        code = 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else 1 if leaving.code else 0
    except BaseException:
        traceback.print_exc()
    finally:
        # No exit handlers: a candidate may have left some, and what they say comes too late to count.
        for stream in (sys.stdout, sys.stderr):
            try:
                stream.flush()
            except BaseException:
                pass
        os._exit(code & 0xFF)
