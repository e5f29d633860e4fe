"""Where inputs lie in the buffer that the judge shares with its workers: slot after slot, all laid out alike.

Two serve calls by themselves. In a row of calls each has a slot of its own, from 1 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from tools.worker.arena import GUARD, Layout

ROW_BYTES = {"cpu": 64 << 20, "cuda": 2 << 30}
MOST_IN_ROW = 64
"""In a row the inputs of all calls lie in slots, and all outputs are kept: so many, and so many bytes of either."""

Slots = list[list[dict[str, Any]]]


def input_slots(tensors: Sequence[torch.Tensor], output_bytes: int, device: str) -> tuple[Slots, int]:
    """Two slots or more, each the places of tensors like these, and the bytes of one."""
    layout = Layout()
    slots = [[layout.place(t) for t in tensors]]
    one = layout.end
    calls = ROW_BYTES[device] // max(one, output_bytes, 1)
    slots += [[layout.place(t) for t in tensors] for _ in range(min(max(calls, 1), MOST_IN_ROW))]
    return slots, one


def end(slots: Slots) -> int:
    """Bytes that all slots take."""
    return max((place["offset"] + place["bytes"] + GUARD for slot in slots for place in slot), default=0)
