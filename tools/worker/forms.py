"""Other forms of a trusted model: eager or compiled, with or without TF32."""

from __future__ import annotations

from typing import Any

import torch

_MODES = {"compile": "default", "compile_max_autotune": "max-autotune"}


class Forms:
    """Forms that have been asked for are kept, so that they can be called in turn."""

    def __init__(self) -> None:
        self._made: dict[str, Any] = {}
        self._tf32 = False

    def use(self, model: torch.nn.Module, kind: str) -> Any:
        """What is to be called for `kind`: `eager`, `compile` or `compile_max_autotune`, each also with `_tf32` behind.
        Whether TF32 is allowed in matrix products is set for the whole process."""
        allowed = kind.endswith("_tf32")
        if allowed != self._tf32:
            torch.backends.cuda.matmul.allow_tf32 = allowed
            self._tf32 = allowed
        mode = kind.removesuffix("_tf32")
        if mode == "eager":
            return model
        if kind not in self._made:
            self._made[kind] = torch.compile(model, mode=_MODES[mode])
        return self._made[kind]

    def forget(self) -> None:
        """Let go of what was compiled, and of the memory that it holds."""
        if self._made:
            self._made = {}
            torch._dynamo.reset()
