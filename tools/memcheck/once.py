"""In an untrusted process: run the candidate, for an instrument that watches it."""

from __future__ import annotations

from typing import Any

from tools.probe.subject import load
from tools.worker.poison import Poison


def call(args: dict[str, Any], _guard: Poison) -> dict[str, Any]:
    """Load and call it twice: once may leave something for the next time."""
    subject = load(args)
    outputs = subject.call(subject.copies())
    if any(t.is_cuda for t in outputs):
        import torch

        torch.cuda.synchronize()
    return {}
