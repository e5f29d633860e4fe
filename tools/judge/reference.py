"""The problem as the judge holds it: the reference module, its inputs, and an fp64 oracle made from the same module.

Global flags are the judge's own: each evaluation sets the precision it wants and restores what was there.
"""

from __future__ import annotations

import contextlib
import copy
import linecache
import sys
import time
import types
from collections.abc import Generator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from problems import ProblemError
from tools.judge.deadline import deadline
from tools.judge.module_state import State, steady
from tools.judge.problem_code import PROBLEM_FILE, WANTED, arguments, as_list, call, form, results, same_form
from tools.judge.variation import Repair
from tools.worker.seeding import seed_all
from tools.worker.trees import unflatten

DRAW_SECONDS = 60.0
_FLOATS = (torch.float16, torch.bfloat16, torch.float32)


@contextlib.contextmanager
def precision(*, tf32: bool | None) -> Generator[None]:
    """Run with TF32 allowed (True), forbidden (False) or as PyTorch's defaults have it (None)."""
    backends = torch.backends
    before = (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32)
    if tf32 is not None:
        backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = tf32
    try:
        yield
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = before


class _InDouble(TorchFunctionMode):
    """Turns every cast to a shorter floating type into a cast to fp64, so that a reference's own casts don't limit
    the oracle."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in ("float", "half", "bfloat16") and args and isinstance(args[0], torch.Tensor):
            return args[0].double()
        args = tuple(torch.float64 if isinstance(a, torch.dtype) and a in _FLOATS else a for a in args)
        kwargs = {k: torch.float64 if k == "dtype" and v in _FLOATS else v for k, v in (kwargs or {}).items()}
        result = func(*args, **kwargs)
        # A tensor that the forward makes without naming a dtype would be fp32 and drag the rest down with it.
        if isinstance(result, torch.Tensor) and result.dtype in _FLOATS:
            return result.double()
        return result


class Reference:
    """A problem's module and inputs on one device.

    `init_args` and inputs come from the problem's own functions under a given seed, drawn on the device itself: a
    KernelBench input of 4 GB takes 6 s on the CPU and 6 ms on the GPU. A `repair` replaces inputs and weights.
    """

    def __init__(self, source: str, size: str, device: str) -> None:
        self.device = device
        self.module = _execute(source)
        self.repair: Repair | None = None
        self.draw_seconds = 0.0
        """How long the last draw took."""

        self.changing: tuple[str, ...] = ()
        """Buffers that forward changes. Every run starts from what the model has there, and leaves that as it was."""

        self.after: State = {}
        """What the last run made of these."""

        self._form: list[str] = []
        self._outputs: list[str] = []
        self.overrides: dict[str, Any] = {}
        if size != "full":
            self.overrides = dict(getattr(self.module, size.upper(), {}))
            vars(self.module).update(self.overrides)
        self.init_args: list[Any] = []
        if hasattr(self.module, "get_init_inputs"):
            self.init_args = as_list("get_init_inputs", call("get_init_inputs", self.module.get_init_inputs))
            arguments("get_init_inputs", self.init_args)

    def build(self, seed: int) -> torch.nn.Module:
        """The module, constructed under `seed` on the CPU's generator and moved to the device, in train mode as
        made."""
        seed_all(seed)
        model = call("Model(...)", lambda: self.module.Model(*copy.deepcopy(self.init_args)))
        if not isinstance(model, torch.nn.Module):
            raise ProblemError(
                f"Model(...) makes a value of type {type(model).__name__}, which is no torch.nn.Module: derive class "
                "Model from nn.Module."
            )
        if self.repair is not None:
            self.repair.weights(model, seed)
        return model.to(self.device)

    def inputs(self, seed: int) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """Fresh inputs drawn under `seed`: their description and tensors on the device."""
        seed_all(seed)
        began = time.monotonic()
        slow = (
            f"get_inputs() takes longer than {DRAW_SECONDS:.0f} s here, and is called for every trial: draw with torch "
            "and without loops, or use smaller sizes (--size small)"
        )
        with torch.device(self.device), deadline(DRAW_SECONDS, slow):
            values = call("get_inputs", self.module.get_inputs)
        self.draw_seconds = time.monotonic() - began
        spec, tensors = arguments("get_inputs", as_list("get_inputs", values))
        if not tensors:
            raise ProblemError(f"get_inputs() returns no tensor: {WANTED['get_inputs']}.")
        self._form = self._form or form(tensors)
        same_form("get_inputs", self._form, form(tensors))
        tensors = [t.detach().to(self.device) for t in tensors]
        return spec, tensors if self.repair is None else self.repair.inputs(tensors, seed)

    def run(
        self,
        model: torch.nn.Module,
        spec: dict[str, Any],
        tensors: list[torch.Tensor],
        *,
        tf32: bool | None = None,
        seed: int | None = None,
    ) -> tuple[dict[str, Any], list[torch.Tensor]]:
        """One forward without gradients: the outputs' description and tensors. `seed` reseeds before (dropout)."""
        if seed is not None:
            seed_all(seed)
        with torch.no_grad(), precision(tf32=tf32), steady(model, self.changing, self.after):
            output = model(*unflatten(spec, tensors))
        return results(output)

    def settle(self, outputs: list[torch.Tensor]) -> None:
        """Note the shapes and dtypes of the outputs on the problem's own inputs. Raises ProblemError when they are
        others than before."""
        self._outputs = self._outputs or form(outputs)
        same_form("Model.forward", self._outputs, form(outputs))

    def usual(self, outputs: list[torch.Tensor]) -> bool:
        """Whether outputs have the shapes and dtypes that they have on the problem's own inputs."""
        return not self._outputs or form(outputs) == self._outputs

    def try_run(self, model: torch.nn.Module, spec: dict[str, Any], tensors: list[torch.Tensor]) -> None:
        """A forward for its own sake: what it raises is the problem's fault, and a ProblemError that names the line."""
        call("Model.forward", lambda: self.run(model, spec, tensors))


def oracle_model(model: torch.nn.Module) -> torch.nn.Module:
    """A copy of the module with every floating parameter and buffer in fp64."""
    return copy.deepcopy(model).double()


def run_oracle(
    reference: Reference,
    model: torch.nn.Module,
    spec: dict[str, Any],
    tensors: list[torch.Tensor],
    seed: int | None,
) -> list[torch.Tensor]:
    """Outputs of the fp64 module on fp64 copies of the inputs. Raises what the module raises when it can't run so."""
    doubled = [t.double() if t.is_floating_point() else t.clone() for t in tensors]
    with _InDouble():
        return reference.run(model, spec, doubled, tf32=False, seed=seed)[1]


def _execute(source: str) -> types.ModuleType:
    module = types.ModuleType("problem")
    module.__file__ = PROBLEM_FILE
    sys.modules["problem"] = module
    linecache.cache[PROBLEM_FILE] = (len(source), None, source.splitlines(keepends=True), PROBLEM_FILE)
    call("the problem file", lambda: exec(compile(source, PROBLEM_FILE, "exec"), vars(module)))
    for name in ("Model", "get_inputs"):
        if not hasattr(module, name):
            raise ProblemError(f"the problem file defines no {name} once it has run: define it at module level.")
    return module
