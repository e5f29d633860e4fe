"""Runs in a sandboxed child of the nursery: set the device up, give up what no candidate needs, answer."""

from __future__ import annotations

import os
import socket
from typing import Any

import torch

from tools.channel import send_json
from tools.device.environment import evidence
from tools.probe.answer import answer
from tools.sandbox import lock_down
from tools.types import SandboxLevel
from tools.worker.poison import Poison


def main(sock: socket.socket, args: dict[str, Any], _fds: list[int]) -> None:
    """Send the evidence of where this runs, then the answer to `args["target"]`.

    The evidence is gathered before anything of the candidate's runs, so the first message can be believed.
    """
    prepare()
    # The guarded allocator must be in place before anything touches the device.
    guard = Poison(args["device"], args.get("helper"))
    start_device(args["device"])  # the context, before the filter
    where = evidence(args["device"], sandbox=SandboxLevel(args["level"]), compiler=args.get("compiler"))
    lock_down()
    send_json(sock, where.model_dump(mode="json"))
    send_json(sock, answer(args["target"], args, guard), timeout=10)


def prepare() -> None:
    """The settings under which a candidate is judged, too: no gradients, as many threads as there are cores to use."""
    torch.set_grad_enabled(False)
    torch.set_num_threads(max(1, min(torch.get_num_threads(), len(os.sched_getaffinity(0)))))


def start_device(device: str) -> None:
    """Make the CUDA context, and have PyTorch count devices by the runtime from here on."""
    if device == "cuda":
        from tools.worker import cuda_memory

        torch.zeros(1, device="cuda")
        cuda_memory.reset_persisting_l2()
