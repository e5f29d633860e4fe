"""Runs in a sandboxed child: one script, its `load_inline` calls answered by libraries that were built before.

What the script prints goes to the warden, which bounds it. The reply on the socket only says how it ended.
"""

from __future__ import annotations

import ctypes
import io
import os
import socket
import sys
import time
import traceback
from typing import Any

import torch

from tools.channel import send_json
from tools.sandbox import lock_down
from tools.worker.loader import CANDIDATE_FILE, BuiltLibraries, LoadFailure, run_module

_LINE_BUFFERED = 1


def main(sock: socket.socket, args: dict[str, Any], _fds: list[int]) -> None:
    """Send `{"ready": true}`, run `args["source"]` as `__main__`, and say how it ended.

    `args`: `source`, `device` and `modules` (name, library and call of each).
    """
    torch.set_num_threads(min(torch.get_num_threads(), len(os.sched_getaffinity(0))))
    if args["device"] == "cuda":
        torch.zeros(1, device="cuda")  # the context, before the filter
    libraries = BuiltLibraries(args["modules"])
    libraries.install()
    _print_at_once()
    lock_down()
    send_json(sock, {"ready": True})
    began = time.monotonic()
    reply: dict[str, Any] = {"raised": None, "unbuilt": False}
    try:
        run_module(args["source"], libraries, "__main__")
        if args["device"] == "cuda":
            torch.cuda.synchronize()  # so that what failed on the device, or was printed there, is seen
    except SystemExit as leaving:
        if isinstance(leaving.code, int):
            reply["raised"] = f"SystemExit({leaving.code})" if leaving.code else None
        elif leaving.code is not None:
            reply["raised"] = "SystemExit"
            print(leaving, file=sys.stderr)  # as Python itself would
    except BaseException as error:
        reply = {"raised": type(error).__name__, "unbuilt": isinstance(error, LoadFailure)}
        _show(error)
    reply["seconds"] = time.monotonic() - began
    ctypes.CDLL(None).fflush(None)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    send_json(sock, reply, timeout=10)


def _print_at_once() -> None:
    """Line by line, from Python and from C: a script that is stopped or dies has shown what it printed before."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(line_buffering=True)
    library = ctypes.CDLL(None)
    library.setvbuf(ctypes.c_void_p.in_dll(library, "stdout"), None, _LINE_BUFFERED, 0)


def _show(error: BaseException) -> None:
    """The traceback from the script's own first line on."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename != CANDIDATE_FILE:
        trace = trace.tb_next
    traceback.print_exception(type(error), error, trace)
