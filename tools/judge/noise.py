"""What rounding each single step to fp32 costs, whatever the order and grouping of the rest.

An output may be a difference of larger numbers that no change of the inputs shows: a loss of 5e-4 that is a logarithm
of a sum less a logit of 14 is off by what the logit is off by, however the inputs are scaled. Which of such forms a
kernel takes is its own affair, so the reference is evaluated in fp64 with every step off by up to half a unit of fp32
at random, as an honest kernel's are.
"""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING, Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from problems import ProblemError
from tools.judge.errors import Error, measure
from tools.judge.inputs import SPECIAL, other_draws
from tools.judge.limits import NOISE_MAX, NOISE_RMS, at_an_edge
from tools.judge.oracle import NoDouble, exhausted
from tools.judge.trial import Trial

if TYPE_CHECKING:
    from tools.judge.bench import Bench

UNIT = 2.0**-24
SECONDS = 1.0
DRAWS = ((16, 16), (4096, 4), (1 << 62, 1))
"""Draws for outputs of fewer elements than that: one number says little, and a million say all in one draw."""

MOST_ELEMENTS = 1 << 24
"""Of inputs and outputs together: errors of longer sums average out, and memory may be short."""

_CHOOSING = """
abs amax amin arange argsort bucketize cat ceil clamp clone constant_pad_nd copy cummax cummin embedding
empty empty_like fill flip floor frac full full_like gather heaviside im2col index index_put index_select
kthvalue lift_fresh lift_fresh_copy masked_fill masked_scatter masked_select max max_pool2d_with_indices
max_pool3d_with_indices maximum median min minimum neg new_empty new_full new_ones new_zeros nonzero ones
ones_like pixel_shuffle relu repeat roll round scalar_tensor scatter searchsorted sgn sign sort stack
threshold topk tril triu trunc upsample_nearest2d where zero zeros zeros_like _to_copy _unsafe_view
"""
"""Steps that choose, move or make values, and round none."""

_EXACT = frozenset(_CHOOSING.split())

Pairs = list[tuple[float, float]]


class _Rounding(TorchDispatchMode):
    """Each step's result in fp64, off by up to UNIT of itself; all of it by the same if `alike`."""

    def __init__(self, generator: torch.Generator, *, alike: bool) -> None:
        super().__init__()
        self._generator = generator
        self._alike = alike

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # as in tools.device.floor: skipping Dynamo would import all of it, which takes a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = str(func.overloadpacket.__name__)
        if name == "_log_softmax" and args[0].dtype is torch.float64:
            # As a kernel may have it: what is subtracted is rounded first.
            whole = torch.logsumexp(args[0], args[1], keepdim=True)
            return self._off(args[0] - self._off(whole))
        result = func(*args, **(kwargs or {}))
        writes = any(a.alias_info is not None and a.alias_info.is_write for a in func._schema.arguments)
        if name.rstrip("_") in _EXACT or name in _EXACT or (func.is_view and not writes):
            return result
        for tensor in result if isinstance(result, tuple | list) else (result,):
            if isinstance(tensor, torch.Tensor) and tensor.dtype is torch.float64:
                self._off(tensor)
        return result

    def _off(self, tensor: torch.Tensor) -> torch.Tensor:
        noise = torch.rand(
            () if self._alike else tensor.shape, generator=self._generator, device=tensor.device, dtype=torch.float64
        )
        return tensor.mul_(noise.mul_(2 * UNIT).add_(1 - UNIT))


def noise(bench: Bench, trial: Trial, *, alike: bool = False) -> Pairs:
    """RMS and maximum of what rounding each step changes in each output. Empty where nothing tells. `alike` is for
    inputs so much alike that all rows may be rounded to the same side, which no mean over them makes less."""
    total = sum(t.numel() for t in (*trial.tensors, *trial.reference))
    if bench.oracle != "fp64" or bench.uses_rng or bench.double.way != "whole" or total > MOST_ELEMENTS:
        return []
    drawn: list[list[Error]] = []
    generator = other_draws(trial.seed, bench.device)
    oracle, stop = trial.oracle, time.monotonic() + SECONDS
    fewest = min((t.numel() for t in trial.reference), default=0)
    draws = next(count for elements, count in DRAWS if fewest < elements)
    while len(drawn) < draws and (not drawn or time.monotonic() < stop):
        try:
            with _Rounding(generator, alike=alike):
                found = bench.double.run(
                    trial.model or bench.oracle_model,
                    trial.spec,
                    trial.tensors,
                    mutated=trial.mutated,
                    reference=trial.reference,
                )
        except (ProblemError, NoDouble, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if exhausted(error):
                raise
            return []
        drawn.append([_steady(f, o) for f, o in zip(found, oracle, strict=True)])
    return [_spread([e for e in errors if not e.unsound]) for errors in zip(*drawn, strict=True)]


def within_noise(bench: Bench, trial: Trial, i: int, error: Error) -> bool:
    """Whether the error of output `i` is no more than rounding each step to fp32 makes it."""
    if error.unsound or not trial.reference[i].is_floating_point():
        return False
    for alike in (False, True)[: 1 + (trial.kind in SPECIAL)]:
        found = noise(bench, trial, alike=alike)
        if found and error.rms <= NOISE_RMS * found[i][0] and error.maximum <= NOISE_MAX * found[i][1]:
            return True
    return False


def _steady(output: torch.Tensor, oracle: torch.Tensor) -> Error:
    """The error without that of elements at the edge of two steps, which went the other way: one of them would make a
    step what rounding costs."""
    error = measure(output, oracle)
    for _ in range(8):
        if not at_an_edge(error):
            break
        output = torch.where((output - oracle).abs() > error.maximum / 2, oracle, output)
        error = measure(output, oracle)
    return error


def _spread(errors: list[Error]) -> tuple[float, float]:
    if not errors:
        return 0.0, 0.0
    return math.sqrt(sum(e.rms**2 for e in errors) / len(errors)), max(e.maximum for e in errors)
