"""Running a problem's own code: what it raises, or returns and can't be used, becomes one message with a next step."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

import torch

from problems import ProblemError
from tools.worker.trees import Spec, TreeError, flatten

PROBLEM_FILE = "problem.py"
"""The name under which tracebacks show the problem."""

What = Literal["the problem file", "get_init_inputs", "get_inputs", "Model(...)", "Model.forward"]
T = TypeVar("T")

ADVICE: dict[What, str] = {
    "the problem file": "Correct the file until `python FILE` runs without an error.",
    "get_init_inputs": "Correct get_init_inputs in the problem file.",
    "get_inputs": "Correct get_inputs in the problem file.",
    "Model(...)": "Correct Model, or get_init_inputs(), whose list are its arguments.",
    "Model.forward": "Correct forward, or get_inputs(), whose list are its arguments.",
}
WANTED: dict[What, str] = {
    "get_init_inputs": "return a list with the arguments of Model, [] if it takes none",
    "get_inputs": "return a list with the arguments of Model.forward, such as [torch.randn(16, 64)]",
}
_FIXED: dict[What, str] = {
    "get_inputs": "Use sizes that are constants of the problem file.",
    "Model.forward": "Return tensors of a fixed shape, padded or masked where the number of results varies.",
}
PLAIN = "tensors, numbers, strings, None, dtypes, devices, and lists, tuples and dicts of these"
SMALLER = "Use smaller sizes (`--size small`, with SMALL in the problem file) or a device with more memory."


def call(what: What, function: Callable[[], T]) -> T:
    """Run problem code. Raises ProblemError for whatever it raises, with the line."""
    try:
        return function()
    except ProblemError:
        raise
    except torch.OutOfMemoryError as error:
        first = str(error).splitlines()[0]
        raise ProblemError(f"{what} needs more memory than the device has: {first} {SMALLER}") from error
    except (Exception, SystemExit) as error:
        line = None
        trace = error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == PROBLEM_FILE:
                line = trace.tb_lineno
            trace = trace.tb_next
        where = f" (line {line} of the problem)" if line else ""
        said = f"{what} raised {type(error).__name__}: {str(error)[:500]}{where}"
        raise ProblemError(f"{said}. {_advice(what, error)}") from error


def as_list(what: What, value: Any) -> list[Any]:
    """What a problem's function has returned as a list of arguments. Raises ProblemError where it is none."""
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, torch.Tensor):
        return [value]
    if value is None:
        raise ProblemError(f"{what}() returns nothing: {WANTED[what]}.")
    raise ProblemError(f"{what}() returns a value of type {type(value).__name__} and no list: {WANTED[what]}.")


def arguments(what: What, values: list[Any]) -> tuple[Spec, list[torch.Tensor]]:
    """`flatten` for arguments that a candidate is to be given too. Raises ProblemError for what can't be passed on."""
    try:
        spec, tensors = flatten(values)
    except TreeError as error:
        made = "Model" if what == "get_init_inputs" else "Model.forward"
        raise ProblemError(
            f"{what}() returns {error}, which can't be handed to a candidate: return {PLAIN}, and make anything else "
            f"in {made}."
        ) from error
    if odd := _odd(tensors):
        raise ProblemError(f"{what}() returns {odd}: return a dense one, and convert it in Model.forward.")
    return spec, tensors


def results(output: object) -> tuple[Spec, list[torch.Tensor]]:
    """`flatten` for what forward has returned. Raises ProblemError for what can't be compared."""
    try:
        spec, tensors = flatten(output)
    except TreeError as error:
        raise ProblemError(f"Model.forward returns {error}, which can't be compared: return {PLAIN}.") from error
    if odd := _odd(tensors):
        raise ProblemError(f"Model.forward returns {odd}, which can't be compared: return it dense (`.to_dense()`).")
    return spec, tensors


def form(tensors: Sequence[torch.Tensor]) -> list[str]:
    """Dtype and shape of each, such as `float32[16, 64]`."""
    return [f"{str(t.dtype).removeprefix('torch.')}{list(t.shape)}" for t in tensors]


def same_form(what: What, before: list[str], now: list[str]) -> None:
    """Raise ProblemError where shapes and dtypes are not those of another call."""
    if before == now:
        return
    values = "draws" if what == "get_inputs" else "values of the inputs"
    raise ProblemError(
        f"{what} returns {', '.join(now) or 'no tensor'} now and {', '.join(before) or 'no tensor'} before: with other "
        f"{values} all shapes and dtypes must stay the same. {_FIXED[what]}"
    )


def _odd(tensors: Sequence[torch.Tensor]) -> str:
    """Words for a tensor whose values don't lie in memory one by one; empty where there is none."""
    for tensor in tensors:
        if tensor.layout is not torch.strided:
            return f"a tensor of layout {str(tensor.layout).removeprefix('torch.')}"
        if tensor.is_quantized:
            return "a quantised tensor"
    return ""


def _advice(what: What, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name:
        return f"Install {error.name} where `agent` is installed, or write the problem without it."
    if isinstance(error, SystemExit) and what == "the problem file":
        return "What is meant for a script belongs under `if __name__ == '__main__':`."
    return ADVICE[what]
