"""The judge's process: sets the problem up, then answers the evaluator's requests one at a time.

A request names an operation; the reply is a record as JSON, or says that the problem can't be used. What a candidate
does never ends this process.
"""

from __future__ import annotations

import contextlib
import socket
import traceback
from typing import Any

import torch

from problems import ProblemError
from tools.channel import ChannelClosed, receive_json, send_json
from tools.judge.court import Court
from tools.judge.problem_code import SMALLER
from tools.nursery import Nursery

MESSAGE_BYTES = 64 << 20


def main(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Entry point in a process forked from the nursery. `args` are `JudgeSettings` plus the nursery's descriptor."""
    del fds
    nursery = Nursery.attach(int(args["nursery_fd"]))
    torch.set_grad_enabled(True)
    court: Court | None = None
    try:
        court = Court(nursery, args)
        send_json(sock, {"ready": court.describe()}, max_bytes=MESSAGE_BYTES)
        while True:
            with contextlib.suppress(ChannelClosed):
                request = receive_json(sock, timeout=None, max_bytes=MESSAGE_BYTES)
                send_json(sock, _answer(court, request), max_bytes=MESSAGE_BYTES)
                court.afterwards()
                continue
            return
    except ProblemError as error:
        send_json(sock, {"problem_error": str(error)})
    except torch.OutOfMemoryError as error:
        send_json(
            sock,
            {
                "problem_error": f"the problem needs more memory than the device has: {str(error).splitlines()[0]} "
                + SMALLER
            },
        )
    except Exception:
        send_json(sock, {"judge_error": traceback.format_exc()[-4000:]})
    finally:
        if court is not None:
            court.close()


def _answer(court: Court, request: dict[str, Any]) -> dict[str, Any]:
    handler = getattr(court, "do_" + str(request.pop("op")))
    try:
        return {"result": handler(**request)}
    except ProblemError as error:
        return {"problem_error": str(error)}
    except Exception:
        return {"judge_error": traceback.format_exc()[-4000:]}
