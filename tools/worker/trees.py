"""Nested inputs and outputs as a flat list of tensors plus a description that is plain JSON.

A worker and the judge exchange tensors as bytes in shared buffers; what surrounds them (tuples, dicts, numbers)
travels as this description, so nothing has to be unpickled on either side.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import torch

MAX_LEAVES = 4096

Spec = dict[str, Any]


class TreeError(ValueError):
    """The object holds something that cannot be exchanged; the message names its type."""


def flatten(value: object) -> tuple[Spec, list[torch.Tensor]]:
    """Split `value` into its description and its tensors, in reading order.

    Lists, tuples (named ones become plain), dicts with string or int keys, numbers, strings, None, dtypes and devices
    are described; anything else raises TreeError.
    """
    tensors: list[torch.Tensor] = []
    return _describe(value, tensors), tensors


def _describe(value: object, tensors: list[torch.Tensor]) -> Spec:
    if isinstance(value, torch.Tensor):
        tensors.append(value)
        if len(tensors) > MAX_LEAVES:
            raise TreeError(f"more than {MAX_LEAVES} tensors")
        return {"t": "tensor", "i": len(tensors) - 1}
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return {"t": "plain", "v": value}
    if isinstance(value, int):
        return {"t": "plain", "v": int(value)}
    if isinstance(value, float):
        return {"t": "plain", "v": float(value)} if math.isfinite(value) else {"t": "float", "v": repr(float(value))}
    if isinstance(value, complex):
        return {"t": "complex", "v": [value.real, value.imag]}
    if isinstance(value, list | tuple):
        kind = "list" if isinstance(value, list) else "tuple"
        return {"t": kind, "v": [_describe(v, tensors) for v in value]}
    if isinstance(value, dict):
        items: list[list[Any]] = []
        for key, item in value.items():
            if not isinstance(key, str | int):
                raise TreeError(f"a dict with a key of type {type(key).__name__}")
            items.append([key, _describe(item, tensors)])
        return {"t": "dict", "v": items}
    if isinstance(value, torch.dtype | torch.device | torch.Size):
        if isinstance(value, torch.Size):
            return {"t": "tuple", "v": [{"t": "plain", "v": int(v)} for v in value]}
        kind = "dtype" if isinstance(value, torch.dtype) else "device"
        return {"t": kind, "v": str(value).removeprefix("torch.")}
    raise TreeError(f"a value of type {type(value).__name__}")


def unflatten(spec: Spec, tensors: list[torch.Tensor]) -> Any:
    """The inverse of `flatten`, with `tensors` in the described places."""
    kind, value = spec["t"], spec.get("v")
    if kind == "tensor":
        return tensors[spec["i"]]
    if kind == "plain":
        return value
    if kind == "float":
        return float(value)  # type: ignore[arg-type]
    if kind == "complex":
        return complex(*value)  # type: ignore[misc]
    if kind == "dtype":
        return dtype_of(str(value))
    if kind == "device":
        return torch.device(str(value))
    assert value is not None
    if kind == "dict":
        return {key: unflatten(item, tensors) for key, item in value}
    items = [unflatten(item, tensors) for item in value]
    return items if kind == "list" else tuple(items)


def structure(spec: Spec) -> str:
    """A short text of the nesting alone, such as `(tensor, {a: tensor})`, to compare two structures."""
    kind, value = spec["t"], spec.get("v")
    if kind in ("tensor", "dtype", "device"):
        return str(kind)
    if kind in ("plain", "float", "complex"):
        return type(value).__name__ if kind == "plain" else str(kind)
    assert value is not None
    if kind == "dict":
        return "{" + ", ".join(f"{k}: {structure(v)}" for k, v in value) + "}"
    inner = ", ".join(structure(v) for v in value)
    return f"[{inner}]" if kind == "list" else f"({inner})"


def numbers(spec: Spec) -> list[Any]:
    """The values that are no tensors, in reading order."""
    kind, value = spec["t"], spec.get("v")
    if kind in ("plain", "float", "complex"):
        return [unflatten(spec, [])]
    if kind in ("list", "tuple"):
        return [n for item in value or [] for n in numbers(item)]
    return [n for _, item in value or [] for n in numbers(item)] if kind == "dict" else []


def dtype_of(name: str) -> torch.dtype:
    """The dtype of that name (`float32`); TreeError for anything that is not one."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise TreeError(f"no such dtype: {name!r}")
    return found


def digest(tensor: torch.Tensor) -> str:
    """A hash of a tensor's values."""
    data = tensor.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
    return hashlib.blake2b(data.numpy().tobytes(), digest_size=16).hexdigest()
