"""What arithmetic costs on a problem: honest fp32 evaluations, shorter operands, and last bits that decide an answer.

All of it is measured on the reference itself, against its fp64 oracle.
"""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

import torch

from problems import ProblemError
from tools.judge.errors import Error, measure, unknown
from tools.judge.inputs import SPECIAL, other_draws, shake
from tools.judge.limits import (
    ACCUMULATION,
    FEW_ELEMENTS,
    FLOOR_CLASS,
    FLOOR_MAX,
    FLOOR_RMS,
    UNIT_ROUNDOFF,
    Floor,
    at_an_edge,
    rounded,
)
from tools.judge.noise import noise
from tools.judge.oracle import NoDouble, as_double, exhausted
from tools.judge.ties import ORDERS, OtherOrder
from tools.judge.trial import Trial
from tools.types import PrecisionClass

if TYPE_CHECKING:
    from tools.judge.bench import Bench

SHORTER = (PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16)
NEAR_TIE = 2.0**-18
NEAR_TIE_SPECIAL = 2.0**-10
NEAR_TIE_DRAWS = 16
LOSES_DIGITS = 8 * 2.0**-24
SPAN_DRAWS, GROWTH = 3, 2.0**-12
"""Of eight tensors any two go apart in one of three draws."""

JITTERS, JITTER_SECONDS = 8, 1.0
TEN_BITS = 2.0**-11.5
"""The spread of the relative error of rounding to ten mantissa bits, over a binade, is that of so much at random."""


def fp32_floor(bench: Bench, trial: Trial) -> Floor:
    """Errors of honest fp32 evaluations, and of the same mathematics on operands rounded to each class."""
    count = len(trial.reference)
    evaluations = [_strict(bench, trial)]
    if bench.device == "cpu":
        with torch.backends.mkldnn.flags(enabled=False):
            evaluations.append(_strict(bench, trial, tf32=None))
    found: dict[PrecisionClass, list[Error]] = {}
    if bench.oracle != "fp32" and not bench.uses_rng:
        found = {name: rounded_errors(bench, trial, name) for name in SHORTER}
    rms, largest = _relative([error for evaluation in evaluations for error in evaluation[:count]])
    jitters = _jitters(bench, trial) if found else []
    return Floor(
        rms,
        largest,
        {name: _relative(row[:count]) for name, row in found.items()},
        _relative(trial.errors)[0],
        1,
        tuple(_grade(i, evaluations, found, jitters) for i in range(count + len(trial.state))),
        _spans(bench, trial, rms) if found else (),
        tuple(noise(bench, trial)),
    )


def _spans(bench: Bench, trial: Trial, relative: float) -> tuple[tuple[float, float], ...]:
    """How large the numbers are that each output is a difference of: what it changes by when whole tensors grow or
    shrink. Empty where honest fp32, whose error is `relative`, loses no digits."""
    if relative <= LOSES_DIGITS:
        return ()
    found = [(0.0, 0.0)] * len(trial.reference)
    for draw in range(SPAN_DRAWS):
        seen = itertools.count()

        def grown(t: torch.Tensor, draw: int = draw, seen: Iterator[int] = seen) -> torch.Tensor:
            return t.double() * (1 + GROWTH * (1 if next(seen) >> draw & 1 else -1))

        errors = changed(bench, trial, grown)
        found = [(max(a, e.rms / GROWTH), max(b, e.maximum / GROWTH)) for (a, b), e in zip(found, errors, strict=False)]
    return tuple(found)


def _jitters(bench: Bench, trial: Trial) -> list[list[Error]]:
    """Errors under random changes of inputs and weights, of the size that rounding to ten bits has: an output of few
    elements is a sample so small that one rounding of it may be near zero by luck. Empty where no output is."""
    if not any(t.is_floating_point() and 0 < t.numel() < FEW_ELEMENTS for t in trial.reference):
        return []
    generator = other_draws(trial.seed, bench.device)
    found: list[list[Error]] = []
    stop = time.monotonic() + JITTER_SECONDS
    while len(found) < JITTERS and (not found or time.monotonic() < stop):
        found.append(changed(bench, trial, lambda t: shake(t.double(), TEN_BITS, generator)))
    return found


def _grade(
    i: int,
    evaluations: list[list[Error]],
    found: dict[PrecisionClass, list[Error]],
    jitters: list[list[Error]],
) -> tuple[float, float]:
    """What of an error of output `i` is fp32 grade, in its own units: RMS and maximum."""
    honest = [evaluation[i] for evaluation in evaluations if i < len(evaluation)]
    rms = FLOOR_RMS * max((e.rms for e in honest), default=0.0)
    largest = FLOOR_MAX * max((e.maximum for e in honest), default=0.0)
    # bf16 has three bits less than TF32: a second sample of it, for outputs that are one number.
    for name, bits in ((PrecisionClass.TF32, 1.0), (PrecisionClass.BF16, 8.0)):
        if name in found and i < len(found[name]):
            error = found[name][i]
            rms = max(rms, FLOOR_CLASS * error.rms / bits)
            largest = max(largest, 2 * FLOOR_CLASS * error.maximum / bits)
    drawn = [errors[i] for errors in jitters if i < len(errors) and 0 < errors[i].elements < FEW_ELEMENTS]
    if drawn:
        spread = math.sqrt(sum(e.rms**2 for e in drawn) / len(drawn))
        rms, largest = max(rms, FLOOR_CLASS * spread), max(largest, 2 * FLOOR_CLASS * max(e.maximum for e in drawn))
    return rms, largest


def _strict(bench: Bench, trial: Trial, tf32: bool | None = False) -> list[Error]:
    given = [t.clone() for t in trial.tensors]
    seed = trial.seed if bench.uses_rng else None
    outputs = bench.problem.run(bench.model, trial.spec, given, tf32=tf32, seed=seed)[1]
    errors, count = _all_errors(bench, trial, outputs), len(outputs)
    return steady_errors(bench, trial, outputs, errors[:count]) + errors[count:]


def _all_errors(bench: Bench, trial: Trial, outputs: list[torch.Tensor]) -> list[Error]:
    """Errors of outputs and, behind them, of the buffers that the run has changed."""
    after = bench.problem.after  # before the oracle is asked, which may run it again
    errors = trial.truth.measured(outputs)
    return errors + [measure(after[change.name].to(bench.device), change.truth) for change in trial.state]


def steady_errors(bench: Bench, trial: Trial, outputs: list[torch.Tensor], errors: list[Error]) -> list[Error]:
    """The errors without single elements that lie at the edge of two steps: which one it is there is luck, and a step
    so large would be allowed everywhere, were it taken for what arithmetic costs."""
    found = list(errors)
    for i, (output, error) in enumerate(zip(outputs, errors, strict=True)):
        if not output.is_floating_point() or not at_an_edge(error):
            continue
        edges = ambiguous(bench, trial, i, error.maximum / 2)
        found[i] = measure(torch.where(edges, trial.oracle[i].to(output.dtype), output), trial.oracle[i])
    return found


def rounded_errors(bench: Bench, trial: Trial, name: PrecisionClass) -> list[Error]:
    """What rounding inputs and weights to a class changes in each output, and in each buffer that forward changes, the
    rest being exact."""
    return changed(bench, trial, lambda t: rounded(t.double(), name))


def far_error(bench: Bench, trial: Trial, i: int, demanded: PrecisionClass | None = None) -> float:
    """The RMS error of output `i` that inputs and weights of eleven bits cause (shorter ones where the inputs are, or
    where such are `demanded`), rounded or changed at random by as much: rounding leaves alone what is that short, and
    of alike values it makes equal ones. No less than what one float accumulator costs a variance in one pass, and than
    what underflows. Infinite where that is no number any more."""
    name = PrecisionClass.TF32 if demanded is None or demanded not in SHORTER else demanded
    floating = [t for t in trial.tensors if t.is_floating_point() and t.numel() > 1]
    size = max([2.0**-11, *(UNIT_ROUNDOFF.get(t.dtype, 0.0) for t in floating)])
    generator = other_draws(trial.seed, bench.device)
    shaken = changed(bench, trial, lambda t: shake(t.double(), size, generator))
    found = [errors[i] for errors in (rounded_errors(bench, trial, name), shaken)]
    lost = max((_digits_lost(t, bench.floor.reduction) for t in floating), default=0.0) * trial.errors[i].scale
    return max(torch.finfo(torch.float32).tiny, lost, *(math.inf if e.unsound else e.rms for e in found))


def _digits_lost(tensor: torch.Tensor, terms: int) -> float:
    """What one float accumulator of so many terms costs a variance in one pass, of itself: squares are larger than the
    variance that is their difference. Infinite where that is all of it."""
    spread, mean = (float(v) for v in torch.std_mean(tensor.float()))
    larger = (mean / spread) ** 2 if spread > 0 and math.isfinite(mean) else math.inf
    lost = ACCUMULATION * UNIT_ROUNDOFF[torch.float32] * math.sqrt(max(terms, 1)) * larger
    return lost if lost < 0.5 else math.inf


def changed(bench: Bench, trial: Trial, change: Callable[[torch.Tensor], torch.Tensor]) -> list[Error]:
    """What `change` of inputs and weights, in fp64, changes in each output and buffer."""
    short = copy.deepcopy(trial.model or bench.oracle_model)
    with torch.no_grad():
        for parameter in [*short.parameters(), *short.buffers()]:
            if parameter.is_floating_point():
                parameter.data = change(parameter.data)
    try:
        outputs = bench.double.run(
            short,
            trial.spec,
            trial.tensors,
            mutated=trial.mutated,
            reference=trial.reference,
            prepare=lambda t: in_range(t, change),
        )
    except (ProblemError, MemoryError, torch.OutOfMemoryError):
        raise
    except Exception as error:
        # A change so small may lead out of what the reference takes, and says nothing then.
        if exhausted(error) or isinstance(error, NoDouble):
            raise
        known = [*trial.errors, *(c.error for c in trial.state)]
        return [unknown(e.elements, e.scale, e.peak) for e in known]
    return _all_errors(bench, trial, outputs)


def in_range(tensor: torch.Tensor, change: Callable[[torch.Tensor], torch.Tensor]) -> torch.Tensor:
    """`change` of an input, without leading beyond 1 where none of its values is: shares and cosines stay such."""
    made = change(tensor)
    if not tensor.numel():
        return made
    least, most = (float(v) for v in tensor.aminmax())
    return made.clamp_(-1.0, 1.0) if least >= -1 and most <= 1 else made


def ambiguous(bench: Bench, trial: Trial, output: int, least: float = 0.0) -> torch.Tensor:
    """Elements of an output whose answer hangs on the last bits of the inputs, as a mask: near ties of an index or a
    comparison, and values at the edge of two steps, where another order of the same arithmetic may say otherwise; and
    what hangs on the order of equal values, where none is promised. The oracle changes there by more than `least`, in
    the output's units."""
    generator = other_draws(trial.seed, bench.device)
    mask = torch.zeros_like(trial.reference[output], dtype=torch.bool)
    if bench.oracle == "fp32" or bench.uses_rng:
        return mask
    near = NEAR_TIE_SPECIAL if trial.kind in SPECIAL else NEAR_TIE
    ways: list[tuple[AbstractContextManager[object], Callable[[torch.Tensor], torch.Tensor]]] = [
        (contextlib.nullcontext(), lambda t: in_range(t, lambda t: shake(t.double(), near, generator)))
    ]
    if ORDERS.search(bench.source):
        ways.append((OtherOrder(generator), as_double))
    for mode, prepare in ways * NEAR_TIE_DRAWS:
        try:
            with mode:
                found = bench.double.run(
                    trial.model or bench.oracle_model,
                    trial.spec,
                    trial.tensors,
                    mutated=trial.mutated,
                    reference=trial.reference,
                    prepare=prepare,
                )[output]
        except (ProblemError, NoDouble, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if exhausted(error):
                raise
            continue
        if found.shape != mask.shape:
            continue
        if least:
            mask |= (found - trial.oracle[output]).abs() > least
        else:
            mask |= found != trial.oracle[output]
    return mask


def _relative(errors: list[Error]) -> tuple[float, float]:
    rms = max((e.relative for e in errors if e.scale > 0), default=0.0)
    return rms, max((e.maximum / e.peak for e in errors if e.peak > 0), default=0.0)
