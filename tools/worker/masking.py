"""Inputs that lie in shared memory, and that nobody can read before the judge says so.

On CUDA the calls of a row are launched before they begin, and a program's processes are never stopped: what it could
read meanwhile, it could work on meanwhile. So inputs are stored with random words over them (exclusive or), and these
words, the pad, come when the row begins.
"""

from __future__ import annotations

from typing import Any

import torch

from tools.worker.arena import Arena
from tools.worker.trees import dtype_of

WORD = 8

Place = dict[str, Any]


def words(place: Place) -> int:
    """How many words hold a placed tensor."""
    return (int(place["bytes"]) + WORD - 1) // WORD


def words_at(arena: Arena, place: Place) -> torch.Tensor:
    """The words that hold a placed tensor, int64[words]; the last may reach into the guard behind it."""
    return arena.bytes[place["offset"] : place["offset"] + words(place) * WORD].view(torch.int64)


def shaped(held: torch.Tensor, place: Place) -> torch.Tensor:
    """The tensor that words hold, laid out as `place` says."""
    flat = held.view(torch.uint8)[: place["bytes"]].view(dtype_of(place["dtype"]))
    return flat.as_strided(place["shape"], place["stride"])


def unmasked(arena: Arena, place: Place, pad: Place) -> torch.Tensor:
    """A copy of the tensor that is stored at `place`, by the pad that is stored at `pad`."""
    return shaped(torch.bitwise_xor(words_at(arena, place), words_at(arena, pad)), place)


def write_masked(
    arena: Arena, places: list[Place], tensors: list[torch.Tensor], pad: list[torch.Tensor] | None
) -> list[torch.Tensor]:
    """Store tensors under a pad, a new one unless there is one, which is returned. Empties the list of tensors: there
    may be no room for them beside the pad."""
    stored: list[torch.Tensor] = []
    for place in places:
        held = torch.empty(words(place), dtype=torch.int64, device=arena.bytes.device)
        shaped(held, place).copy_(tensors.pop(0))
        stored.append(held)
    if pad is None:
        pad = new_pad(arena, places)
    for place, held, key in zip(places, stored, pad, strict=True):
        words_at(arena, place).copy_(held.bitwise_xor_(key))
    return pad


def new_pad(arena: Arena, places: list[Place]) -> list[torch.Tensor]:
    """Random words, as many as such tensors take."""
    device = arena.bytes.device
    return [torch.empty(words(p), dtype=torch.int64, device=device).random_(-(1 << 63), None) for p in places]


def write_pad(arena: Arena, places: list[Place], pad: list[torch.Tensor]) -> None:
    """Store the pad itself."""
    for place, key in zip(places, pad, strict=True):
        words_at(arena, place).copy_(key)
