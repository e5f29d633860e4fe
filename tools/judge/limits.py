"""The precision rule: how far a candidate may be from the fp64 oracle, and what arithmetic its error looks like.

A candidate must be no less accurate than the reference as it runs, or than honest fp32 arithmetic, whichever is looser:

    rms  <= max(REFERENCE_RMS * rms(reference), fp32 grade)
    max  <= max(REFERENCE_MAX * max(reference), fp32 grade)

What counts as fp32 grade is the loosest of three. (1) FLOOR_RMS times the larger error of two honest fp32 evaluations
of the reference, relative and absolute. (2) What a sequential fp32 sum of K terms costs (2 * u * sqrt(K), relative; K
is the longest reduction of the problem): a kernel that adds in plain order is honest though a library adds in blocks.
(3) A tenth of what operands of ten mantissa bits would cost, which is absolute: a variance in one pass or a mean near
zero loses digits that a reference in two passes keeps, and is still three bits better than TF32; a hundredth where
nothing cancels. docs/judge.md has the calibration.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch

from tools.judge.errors import Error
from tools.types import PrecisionClass

REFERENCE_RMS = 1.5
"""Between a TF32 kernel that rounds (1.0 times the reference's error) and one that truncates (2.6 to 3.2 times)."""

REFERENCE_MAX = 3.0
FLOOR_RMS = 10.0
FLOOR_MAX = 16.0
SHORT_FLOOR_RMS = 2.0
SHORT_FLOOR_MAX = 4.0
"""Ten times the rounding of bf16 outputs would let weights of six bits pass for those of sixteen; of eight they cost
2.6 times that rounding."""

ACCUMULATION = 2.0
"""One float accumulator loses 0.25 u sqrt(K) of terms drawn from [0, 1), and 4.3 u sqrt(K) of 630,000 smooth L1 losses,
where the rounding has a side; that is a single number, to which FEW gives three times more."""

FLOOR_CLASS = 0.1
FEW = 2.0
"""An output of n elements is a sample: its error may be 1 + 2 / sqrt(n) times the expected one."""

CANCELLING = 4 * 2.0**-11
"""Where ten-bit operands cost four times their own rounding, outputs are differences of larger numbers."""

WELL_CONDITIONED = 0.1
"""Elsewhere digits are lost to nothing but short operands: a table of eighteen bits a value would be fp32 grade, and
gain by it. Not so an output of few elements: a sum that long hides more by its own rounding."""

PLAIN_ORDER = 0.25
"""A sum in plain order is as far off as its terms are large, and not its difference from another. Of that scale no more
is allowed than it costs, twice: bf16 operands cost ten times as much where they are 10,000."""

NOISE_RMS, NOISE_MAX = 4.0, 8.0
"""So many times the spread of it is within what luck does to one number."""

FEW_ELEMENTS = 16
MANY = 1000
LONELY, STEP = 0.05, 2.0**-16
"""Of many elements one with so much of all squared error, and an error so large, is at an edge (of two steps)."""

TRUNCATED = 1.5 * 2.0**-10
MOST_AT_EDGES = 2
FEW_AT_EDGES = 10_000
"""So many elements, and one in so many, may lie on the other side of a step."""

SPECIAL_RELATIVE = 1e-2
"""On inputs the problem did not ask for (scaled, shifted, sparse) only gross errors count."""

UNIT_ROUNDOFF = {torch.float16: 2.0**-11, torch.bfloat16: 2.0**-8, torch.float32: 2.0**-24, torch.float64: 2.0**-53}


@dataclass(frozen=True)
class Limit:
    """The largest RMS and maximum error an output may have."""

    rms: float
    maximum: float

    def share(self, error: Error) -> float:
        """How many times the larger of both errors is what it may be."""
        if error.unsound:
            return math.inf
        pairs = ((error.rms, self.rms), (error.maximum, self.maximum))
        return max(found / most if most else math.inf * (found > 0) if found else 0.0 for found, most in pairs)

    def admits(self, error: Error) -> bool:
        return error.unsound == 0 and error.rms <= self.rms and error.maximum <= self.maximum


@dataclass(frozen=True)
class Floor:
    """Errors relative to the oracle's RMS (for `rms`) and peak (for `maximum`) on the problem's own inputs."""

    rms: float
    maximum: float
    classes: dict[PrecisionClass, tuple[float, float]]
    """Relative RMS and maximum error when inputs and weights are rounded to that class and the rest is exact."""

    reference_rms: float
    reduction: int
    grades: tuple[tuple[float, float], ...] = ()
    """For each output, then each buffer that forward changes, in its own units: the RMS and maximum error that count
    as fp32 grade on the problem's own inputs, however small the output is there."""

    spans: tuple[tuple[float, float], ...] = ()
    """For each output, where honest arithmetic loses digits: RMS and maximum of the numbers whose difference it is."""

    noise: tuple[tuple[float, float], ...] = ()
    """For each output RMS and maximum of what rounding each step of the reference to fp32 changes."""

    @property
    def reference_is_fp32(self) -> bool:
        """Whether the reference, as it runs, is about as accurate as strict fp32."""
        return self.rms > 0 and self.reference_rms <= 4 * self.rms


def at_an_edge(error: Error) -> bool:
    """Whether one of many elements makes so much of an error that it must lie at the edge of two steps."""
    # Without squares, which overflow where a value is the largest of its type.
    lonely = error.maximum >= math.sqrt(LONELY * error.elements) * error.rms
    return lonely and not error.unsound and error.elements >= MANY and error.maximum > STEP * error.peak


def floor_limit(floor: Floor, error: Error, dtype: torch.dtype, output: int | None = None) -> Limit:
    """What honest fp32 arithmetic may cost on an output of that scale (`error` is the reference's, for its scale and
    size). `output` is its index, where what the problem's own inputs tell of it is to count."""
    u_out = UNIT_ROUNDOFF.get(dtype, 0.0)
    u_sum = UNIT_ROUNDOFF[torch.float64] if dtype is torch.float64 else UNIT_ROUNDOFF[torch.float32]
    sum_error = ACCUMULATION * u_sum * math.sqrt(max(floor.reduction, 1))
    few = 1 + FEW / math.sqrt(max(error.elements, 1))
    # What the floor of a short type measures is the rounding of the output, which every kernel does once.
    short = dtype in (torch.float16, torch.bfloat16)
    floor_rms, floor_max = (SHORT_FLOOR_RMS, SHORT_FLOOR_MAX) if short else (FLOOR_RMS, FLOOR_MAX)
    span_rms, span_max = floor.spans[output] if output is not None and output < len(floor.spans) else (0.0, 0.0)
    span_rms, span_max = max(error.scale, PLAIN_ORDER * span_rms), max(error.peak, PLAIN_ORDER * span_max)
    rms = max(floor_rms * floor.rms * error.scale, u_out * error.scale + few * sum_error * span_rms)
    largest = max(floor_max * floor.maximum * error.peak, 8 * (u_out * error.peak + sum_error * span_max))
    if dtype is not torch.float64 and not short and output is not None and output < len(floor.noise):
        rms = max(rms, few * NOISE_RMS * floor.noise[output][0])
        largest = max(largest, few * NOISE_MAX * floor.noise[output][1])
    if dtype is not torch.float64 and not short and output is not None and output < len(floor.grades):
        grade_rms, grade_max = floor.grades[output]
        cancels = grade_rms > FLOOR_CLASS * CANCELLING * error.scale
        share = few if cancels or error.elements < FEW_ELEMENTS else few * WELL_CONDITIONED
        rms, largest = max(rms, share * grade_rms), max(largest, share * grade_max)
    return Limit(rms, largest)


def own_limit(
    floor: Floor, reference: Error, dtype: torch.dtype, demanded: PrecisionClass | None, output: int | None = None
) -> Limit:
    """The limit on the problem's own distribution. `demanded` replaces the reference's precision by a named one."""
    base = floor_limit(floor, reference, dtype, output)
    rms, largest = REFERENCE_RMS * reference.rms, REFERENCE_MAX * reference.maximum
    if demanded is PrecisionClass.FP32:
        return base
    if demanded is not None and demanded in floor.classes:
        class_rms, class_max = floor.classes[demanded]
        rms, largest = REFERENCE_RMS * class_rms * reference.scale, REFERENCE_MAX * class_max * reference.peak
    return Limit(max(rms, base.rms), max(largest, base.maximum))


def special_limit(own: Limit, reference: Error, *, as_a_whole: bool = False) -> Limit:
    """The looser limit for inputs that are not the problem's own. `as_a_whole` asks of single elements no more than
    that they be finite."""
    rms = max(own.rms, SPECIAL_RELATIVE * reference.scale)
    return Limit(rms, math.inf if as_a_whole else max(own.maximum, 5 * SPECIAL_RELATIVE * reference.peak))


def classify(relative_rms: float, floor: Floor, dtype: torch.dtype) -> PrecisionClass:
    """The class whose error the measured one resembles: the finest that explains it."""
    if relative_rms == 0.0:
        return PrecisionClass.EXACT
    unit = Error(0, 0, 0, 1.0, 1.0, 1, 0)
    fp32 = floor_limit(floor, unit, torch.float32).rms
    if dtype is torch.float64 and relative_rms < 1e-3 * UNIT_ROUNDOFF[torch.float32]:
        return PrecisionClass.FP64
    if relative_rms <= fp32:
        return PrecisionClass.FP32
    for name in (PrecisionClass.TF32, PrecisionClass.FP16, PrecisionClass.BF16):
        # A truncated operand costs up to 3.2 times a rounded one and is still that class.
        if name in floor.classes and relative_rms <= 4.0 * floor.classes[name][0]:
            return name
    return PrecisionClass.WORSE


def looks_reduced(error: Error, floor: Floor, wrong_share: float) -> bool:
    """Whether an excessive error is of the kind that shorter operands cause: everywhere, bounded, and no worse than
    bf16."""
    if error.unsound or wrong_share < 0.02 or PrecisionClass.BF16 not in floor.classes or error.scale == 0:
        return False
    # The error of a single number is always of one sign.
    if error.elements >= 16 and is_truncated(error.bias, error.rms, error.scale):
        return True
    rms, largest = floor.classes[PrecisionClass.BF16]
    # Where operands are bf16 already, rounding them once more changes nothing: shorter ones are told by the outputs.
    rms, largest = max(rms, 2 * floor.rms), max(largest, 2 * floor.maximum)
    return error.rms <= 2.0 * rms * error.scale and error.maximum <= 4.0 * largest * error.peak


def is_truncated(bias: float, rms: float, scale: float) -> bool:
    """Whether an error is of one sign and no larger than cutting two operands down to ten mantissa bits makes it. Where
    all products are positive rounding averages out and cutting does not: that is 15 to 135 times the rounded error."""
    return abs(bias) > 0.5 * rms and rms <= TRUNCATED * scale


def rounded(tensor: torch.Tensor, name: PrecisionClass) -> torch.Tensor:
    """`tensor` with its values rounded to the mantissa of a class, in its own dtype (fp64 for the oracle)."""
    if not tensor.is_floating_point():
        return tensor
    if name is PrecisionClass.TF32:
        mantissa, exponent = torch.frexp(tensor)
        return torch.ldexp(torch.round(mantissa * 2.0**11) / 2.0**11, exponent)
    target = torch.bfloat16 if name is PrecisionClass.BF16 else torch.float16
    return tensor.to(target).to(tensor.dtype)
