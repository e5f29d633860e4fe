"""Notice when a candidate replaces functions that it has no business with.

This runs in the candidate's own process, so it proves nothing to a determined cheat: the judge does not depend on any
of these functions. It names the plain ones, and an honest kernel never trips it.
"""

from __future__ import annotations

import builtins
import gc
import sys
import threading
import time
from typing import Any

import torch
import torch.nn.functional

_WATCHED: dict[str, Any] = {
    "time": time,
    "builtins": builtins,
    "gc": gc,
    "threading.Thread": threading.Thread,
    "torch": torch,
    "torch.Tensor": torch.Tensor,
    "torch._C.TensorBase": torch._C.TensorBase,
    "torch.nn.functional": torch.nn.functional,
    "torch.nn.Module": torch.nn.Module,
    "torch.testing": torch.testing,
    "torch.cuda": torch.cuda,
    "torch.cuda.Event": torch.cuda.Event,
    "torch.cuda.Stream": torch.cuda.Stream,
    "torch.utils.cpp_extension": None,
}

_MODULE_HOOKS = (
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "_global_backward_hooks",
    "_global_parameter_registration_hooks",
    "_global_module_registration_hooks",
)


class Integrity:
    """A snapshot of watched functions and flags; `changes()` and `flags()` say what has moved since."""

    def __init__(self) -> None:
        import torch.utils.cpp_extension as cpp_extension

        watched = {**_WATCHED, "torch.utils.cpp_extension": cpp_extension}
        self._before = {name: _callables(owner) for name, owner in watched.items()}
        self._owners = watched
        self._flags = _flags()

    def changes(self) -> list[str]:
        """Dotted names of functions that are no longer what they were, and of global module hooks."""
        found: list[str] = []
        for name, before in self._before.items():
            now = vars(self._owners[name])
            for attribute, value in before.items():
                if now.get(attribute) is not value and not _rewrapped(f"{name}.{attribute}"):
                    found.append(f"{name}.{attribute}")
        hooks = torch.nn.modules.module
        found.extend(f"torch.nn.modules.module.{h}" for h in _MODULE_HOOKS if getattr(hooks, h, None))
        return found[:20]

    def flags(self) -> list[str]:
        """Global settings that differ from when the worker started, as `name: before -> now`."""
        now = _flags()
        return [f"{name}: {value} -> {now[name]}" for name, value in self._flags.items() if now[name] != value]


def _rewrapped(name: str) -> bool:
    """Whether importing part of PyTorch replaces that function: torch._dynamo wraps one."""
    return name == "torch.manual_seed" and "torch._dynamo" in sys.modules


def _callables(owner: Any) -> dict[str, object]:
    skip = {"__warningregistry__"}
    return {k: v for k, v in vars(owner).items() if k not in skip and (callable(v) or isinstance(v, staticmethod))}


def _flags() -> dict[str, object]:
    backends = torch.backends
    return {
        "torch.backends.cudnn.enabled": backends.cudnn.enabled,
        "torch.backends.cudnn.benchmark": backends.cudnn.benchmark,
        "torch.backends.cudnn.deterministic": backends.cudnn.deterministic,
        "torch.backends.mkldnn.enabled": backends.mkldnn.enabled,
        "torch.default_dtype": str(torch.get_default_dtype()),
        "torch.num_threads": torch.get_num_threads(),
        "torch.deterministic_algorithms": torch.are_deterministic_algorithms_enabled(),
        "torch.float32_matmul_precision": torch.get_float32_matmul_precision(),
    }
