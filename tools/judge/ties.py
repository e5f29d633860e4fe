"""Which of equal values comes first where PyTorch leaves it open: in `topk`, and in `sort` unless told to be stable."""

from __future__ import annotations

import re
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ORDERS = re.compile(r"\b(topk|sort|argsort)\b")
"""In a source, what may order values."""

APART = 2.0**-40
"""So near, in the unit of the largest, values count as equal."""


class OtherOrder(TorchDispatchMode):
    """Equal values are ordered at random; what is returned of values is as it would be."""

    def __init__(self, generator: torch.Generator) -> None:
        super().__init__()
        self._generator = generator

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in tools.device.floor: skipping Dynamo would import all of it, which takes a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        if name not in ("topk", "sort") or kwargs.get("stable") or not args[0].dim() or args[0].is_complex():
            return func(*args, **kwargs)
        given = args[0]
        wide = given.double()
        finite = wide[wide.isfinite()]
        unit = float(finite.abs().max()) if finite.numel() else 1.0
        noise = torch.rand(wide.shape, generator=self._generator, device=wide.device, dtype=wide.dtype)
        _, indices = func(wide + noise * (APART * max(unit, 1e-30)), *args[1:], **kwargs)
        position = 2 if name == "topk" else 1
        dim = kwargs.get("dim", args[position] if len(args) > position else -1)
        return given.gather(dim, indices), indices
