"""Hold what a worker returned against a trial: form first (structure, shape, dtype, device), then values."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import torch

from tools.judge.bench import Bench
from tools.judge.client import Reply
from tools.judge.conditioning import conditioned_limit
from tools.judge.diagnose import diagnose
from tools.judge.errors import Error, measure, worst_element, wrong_elements, wrong_mask
from tools.judge.findings import observe
from tools.judge.inputs import FAR, OWN, SPECIAL
from tools.judge.limits import FEW_AT_EDGES, FEW_ELEMENTS, MOST_AT_EDGES, Limit, looks_reduced
from tools.judge.noise import within_noise
from tools.judge.sensitivity import ambiguous, far_error, rounded_errors
from tools.judge.trial import Trial
from tools.types import ErrorStats, Finding, PrecisionClass, TrialResult, WorstElement
from tools.worker.arena import tensor_at
from tools.worker.trees import numbers, structure

APART = 4.0
"""An integer may be so many times as far from the oracle's as the reference is at most."""

OTHER_MATHEMATICS = frozenset(
    ("all_zeros", "constant_output", "constant_factor", "constant_offset", "sign_flipped", "swapped_axes")
)
"""Findings on an output that no length of operands explains, however small its error."""


@dataclass
class Comparison:
    """One run held against one trial. `outputs` are views of the landing buffer (and of mutated inputs)."""

    result: TrialResult
    outputs: list[torch.Tensor] = field(default_factory=list)
    errors: list[Error] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    reduced: bool = False
    ratio: float = math.inf
    """How many times the worst output's error is what it may be."""

    @property
    def passed(self) -> bool:
        return self.result.passed


def compare(
    bench: Bench,
    trial: Trial,
    reply: Reply,
    slot: int,
    demanded: PrecisionClass | None,
    *,
    allclose: tuple[float, float] | None = None,
) -> Comparison:
    """The comparison of a reply with a trial. `allclose` (atol, rtol) replaces the precision rule by the plain one."""
    wrong_form = _form(bench, trial, reply)
    if wrong_form is not None:
        elements = sum(t.numel() for t in trial.reference)
        return Comparison(
            TrialResult(kind=trial.kind, passed=False, wrong=elements, elements=elements), findings=[wrong_form]
        )
    outputs = collect(bench, trial, reply, slot)
    errors = trial.truth.measured(outputs)
    if allclose is not None:
        return _plain(trial, outputs, errors, allclose)
    passed, findings, wrong, reduced, many = True, [], 0, True, False
    worst_output, worst_ratio = 0, -1.0
    conditioned: Limit | None = None
    for i, (output, error) in enumerate(zip(outputs, errors, strict=True)):
        if not output.is_floating_point() and not output.is_complex():
            count = excess(bench, trial, i, output)
            limit_maximum, admitted = 0.0, count == 0
            ratio = float("inf") if not admitted else 0.0
        else:
            limit = bench.limit(trial, i, demanded)
            limit_maximum = limit.maximum if math.isfinite(limit.maximum) else limit.rms
            found = _near(bench, trial, i, output, error, demanded)
            conditioned = found if found is not None and found != limit else conditioned
            admitted, ratio = found is not None, limit.share(error)
            count = 0 if admitted else max(wrong_elements(output, trial.oracle[i], limit_maximum), 1)
        if ratio > worst_ratio:
            worst_output, worst_ratio = i, ratio
        if admitted:
            continue
        passed, wrong = False, wrong + count
        # A uniform loss of precision exceeds the RMS limit long before single elements exceed the maximum.
        beyond = (
            wrong_elements(output, trial.oracle[i], bench.limit(trial, i, None).rms)
            if output.is_floating_point()
            else count
        )
        # Of few elements luck may make nothing of what shorter operands cost, or much.
        many = many or output.numel() >= FEW_ELEMENTS
        reduced = reduced and looks_reduced(error, bench.floor, beyond / max(output.numel(), 1))
        target = trial.oracle[i] if output.is_floating_point() else trial.reference[i]
        seen = diagnose(output, target, limit_maximum, trial.tensors)
        reduced = reduced and not any(f.code in OTHER_MATHEMATICS for f in seen)
        findings.extend(seen)
    if not passed and not findings:
        summary = f"output {worst_output} is {worst_ratio:.3g} times as far from the fp64 oracle as it may be"
        findings.append(observe("reduced_precision", summary, output=worst_output, ratio=worst_ratio))
    result = TrialResult(
        kind=trial.kind,
        passed=passed,
        wrong=wrong,
        elements=sum(o.numel() for o in outputs),
        error=_stats(errors[worst_output]) if errors else None,
        reference_error=_stats(trial.errors[worst_output]) if errors else None,
        worst=None if passed else _worst(trial, outputs, worst_output),
        conditioned=(conditioned.rms, conditioned.maximum) if conditioned is not None else None,
    )
    return Comparison(result, outputs, errors, findings, reduced=not passed and reduced and many, ratio=worst_ratio)


def admits(bench: Bench, trial: Trial, i: int, output: torch.Tensor, demanded: PrecisionClass | None) -> bool:
    """Whether the precision rule lets `output`, of the right form, pass for output `i` of a trial."""
    if output.is_floating_point() or output.is_complex():
        return _near(bench, trial, i, output, measure(output, trial.oracle[i]), demanded) is not None
    return excess(bench, trial, i, output) == 0


def _near(
    bench: Bench, trial: Trial, i: int, output: torch.Tensor, error: Error, demanded: PrecisionClass | None
) -> Limit | None:
    """The limit by which an output is near enough: its own, or a wider one where the inputs are ill-conditioned."""
    limit = bench.limit(trial, i, demanded)
    if (
        limit.admits(error)
        or at_edges(bench, trial, i, output, error, limit)
        or (trial.kind in SPECIAL and ill_conditioned(bench, trial, i, error, demanded))
        or (trial.kind != OWN and within_noise(bench, trial, i, error))
    ):
        return limit
    gross = error.unsound or error.rms > error.scale
    wider = None if gross else conditioned_limit(bench, trial, i)
    return wider if wider is not None and wider.admits(error) else None


def excess(bench: Bench, trial: Trial, i: int, output: torch.Tensor) -> int:
    """How many integers or bools of output `i` are wrong; 0 where they are no more than may be.

    The oracle's answer and the reference's are both right, as many more as these two differ by are forgiven, and near
    ties may go either way.
    """
    reference, oracle = trial.reference[i], trial.oracle[i].to(trial.reference[i].dtype)
    wrong = (output != reference) & (output != oracle)
    count, allowed = int(wrong.sum()), int((reference != oracle).sum())
    if not count:
        return 0
    # What is much further off than these two are from each other is no matter of rounding.
    far = wrong & (apart(output, oracle) > APART * apart(reference, oracle).max())
    if count <= allowed and not bool(far.any()):
        return 0
    unexplained = ~ambiguous(bench, trial, i)
    count, gross = (int((mask & unexplained).sum()) for mask in (wrong, far))
    return max(gross, count if count > allowed else 0)


def apart(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """How far integers or bools are from each other, element by element."""
    return (a.double() - b.double()).abs()


def at_edges(bench: Bench, trial: Trial, i: int, output: torch.Tensor, error: Error, limit: Limit) -> bool:
    """Whether the RMS error is within the limit, and single elements beyond it lie at the edge of two steps (of a
    rounding, a threshold), where the last bit of honest arithmetic decides which one it is."""
    if error.unsound or error.rms > limit.rms or not limit.maximum or output.is_complex():
        return False
    wrong = wrong_mask(output, trial.oracle[i], limit.maximum)
    if int(wrong.sum()) > MOST_AT_EDGES + output.numel() // FEW_AT_EDGES:
        return False
    return not bool((wrong & ~ambiguous(bench, trial, i, limit.maximum / 2)).any())


def ill_conditioned(bench: Bench, trial: Trial, i: int, error: Error, demanded: PrecisionClass | None = None) -> bool:
    """Whether an error on inputs that the problem did not ask for is no more than bf16 inputs would cause there: a
    variance in one pass is lost far from zero, and right where it is needed. So far from zero that half of a step of
    bf16 is a third of an exponential, eleven bits decide; where nothing tells what they cost, finite values do."""
    if error.unsound:
        return False
    if bench.oracle == "fp32" or bench.uses_rng:
        return trial.kind == FAR
    if trial.kind == FAR:
        return error.rms <= 2 * far_error(bench, trial, i, demanded)
    found = rounded_errors(bench, trial, PrecisionClass.BF16)[i]
    return found.unsound == 0 and error.rms <= 2 * found.rms and error.maximum <= 4 * found.maximum


def collect(bench: Bench, trial: Trial, reply: Reply, slot: int) -> list[torch.Tensor]:
    """The output tensors of a reply of the right form: views of the landing buffer, then inputs that are outputs
    too."""
    bench.synchronize()
    landed = [tensor_at(bench.arenas["landing"], place.model_dump()) for place in reply.tensors]
    return landed + [tensor_at(bench.arenas["inputs"], bench.slots[slot][i]) for i in trial.mutated]


def _form(bench: Bench, trial: Trial, reply: Reply) -> Finding | None:
    try:
        got = structure(reply.outputs)
    except (KeyError, TypeError, RecursionError, ValueError):
        return observe("forged_reply", "the outputs are described in a form that our worker never sends")
    wanted = structure(trial.outputs)
    expected = trial.reference[: len(trial.reference) - len(trial.mutated)]
    if got != wanted or len(reply.tensors) != len(expected):
        summary = f"forward returns {got}, the reference returns {wanted}"
        return observe("wrong_structure", summary[:500], got=got[:200], wanted=wanted[:200])
    for mine, theirs in zip(numbers(reply.outputs), numbers(trial.outputs), strict=True):
        if not equal_number(mine, theirs):
            return observe("wrong_value", f"returns {mine!r} where the reference returns {theirs!r}")
    for i, (place, reference) in enumerate(zip(reply.tensors, expected, strict=True)):
        dtype = str(reference.dtype).removeprefix("torch.")
        shape = list(reference.shape)
        if place.shape != shape:
            summary = f"output {i} has shape {place.shape}, the reference's has {shape}"
            return observe("wrong_shape", summary, output=i, got=str(place.shape), wanted=str(shape))
        if place.dtype != dtype:
            return observe(
                "wrong_dtype",
                f"output {i} is {place.dtype}, the reference's is {dtype}",
                output=i,
                got=place.dtype,
                wanted=dtype,
            )
        if place.device != bench.device:
            return observe(
                "wrong_device",
                f"output {i} is on {place.device}, the reference's on {bench.device}",
                output=i,
                got=place.device,
                wanted=bench.device,
            )
        try:
            tensor_at(bench.arenas["landing"], place.model_dump())
        except (ValueError, RuntimeError):
            return observe("forged_reply", "an output is said to lie outside of the landing buffer")
    return None


def equal_number(mine: object, theirs: object) -> bool:
    """Floats as far as TF32 would tell them apart, everything else exactly."""
    if isinstance(mine, float) and isinstance(theirs, float):
        return math.isclose(mine, theirs, rel_tol=2e-3, abs_tol=1e-6) or (mine != mine and theirs != theirs)
    return mine == theirs


def _plain(trial: Trial, outputs: list[torch.Tensor], errors: list[Error], allclose: tuple[float, float]) -> Comparison:
    """The plain rule: torch.allclose against the reference."""
    atol, rtol = allclose
    wrong = 0
    for output, reference in zip(outputs, trial.reference, strict=True):
        wrong += int((~torch.isclose(output, reference, atol=atol, rtol=rtol)).sum())
    worst = max(range(len(errors)), key=lambda i: errors[i].rms, default=0)
    result = TrialResult(
        kind=trial.kind,
        passed=wrong == 0,
        wrong=wrong,
        elements=sum(o.numel() for o in outputs),
        error=_stats(errors[worst]),
        reference_error=_stats(trial.errors[worst]),
        worst=None if wrong == 0 else _worst(trial, outputs, worst),
    )
    findings = [] if wrong == 0 else diagnose(outputs[worst], trial.reference[worst].double(), atol, trial.tensors)
    return Comparison(result, outputs, errors, findings)


def _stats(error: Error) -> ErrorStats:
    return ErrorStats(maximum=error.maximum, rms=error.rms, bias=error.bias, scale=error.scale)


def _worst(trial: Trial, outputs: list[torch.Tensor], which: int) -> WorstElement:
    index = worst_element(outputs[which], trial.oracle[which])
    at = tuple(index)

    def value(tensor: torch.Tensor) -> float | str:
        number = tensor[at].item()
        number = abs(number) if isinstance(number, complex) else float(number)
        return number if number - number == 0 else str(number)

    return WorstElement(
        output=which,
        index=index,
        candidate=value(outputs[which]),
        reference=value(trial.reference[which]),
        oracle=value(trial.oracle[which]),
    )
