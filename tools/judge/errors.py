"""Error of a set of outputs against the fp64 oracle, computed in slices so that a 17 GB oracle needs no second copy."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from tools.judge import passes

SLICE = 1 << 25
CACHED = 1 << 18
"""Elements of a slice on the CPU, whose caches then hold what several passes look at."""


EDGE = 2.0**-6
"""Of the largest number of a type: so near to it the last bit of honest arithmetic decides whether a value is infinite,
as in a product of a million half-precision elements a few are."""


@dataclass(frozen=True)
class Error:
    """Of one output tensor, in its own units. `scale` is the oracle's RMS, `peak` its largest magnitude.

    `unsound` counts elements that are not finite where the oracle is, or not the same infinity or NaN where it is not.
    """

    maximum: float
    rms: float
    bias: float
    scale: float
    peak: float
    elements: int
    unsound: int

    @property
    def relative(self) -> float:
        return self.rms / self.scale if self.scale > 0 else (0.0 if self.rms == 0 else float("inf"))


def measure(output: torch.Tensor, target: torch.Tensor) -> Error:
    """Error of `output` (any dtype) against `target` (the fp64 oracle, or any dtype compared by value). In another
    shape every element is unsound, and nothing else is said."""
    if output.shape != target.shape:
        return unknown(output.numel())
    return error_of(sums(output, target), output.numel())


def unknown(elements: int, scale: float = 0.0, peak: float = 0.0) -> Error:
    """The error of an output of which nothing can be said."""
    return Error(0.0, 0.0, 0.0, scale, peak, elements, max(elements, 1))


def sums(output: torch.Tensor, target: torch.Tensor) -> list[float]:
    """What an error is made of; those of two parts of an output can be `merged`."""
    flat, truth = real(output).reshape(-1), real(target).reshape(-1)
    found = passes.sums(flat, truth)
    if found is None or found[1] >= (1 - EDGE) * largest(flat) or found[-1]:
        return _sums(flat, truth)
    return found


def real(tensor: torch.Tensor) -> torch.Tensor:
    """Complex numbers as pairs of real ones, in a dimension more; everything else as it is."""
    return torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor


def wide(tensor: torch.Tensor) -> torch.Tensor:
    """In fp64, or two of it where complex."""
    return tensor.to(torch.complex128) if tensor.is_complex() else tensor.double()


def largest(tensor: torch.Tensor) -> float:
    """The largest finite number of a tensor's type. It is what `nan_to_num` and masks put in place of infinity."""
    return torch.finfo(tensor.dtype).max if tensor.is_floating_point() else float("inf")


def merged(a: list[float], b: list[float]) -> list[float]:
    """The sums of two parts together: two maxima, then sums."""
    return [max(x, y) if i < 2 else x + y for i, (x, y) in enumerate(zip(a, b, strict=True))]


def error_of(rows: list[float], elements: int) -> Error:
    """The error of an output of so many elements from its sums."""
    maximum, peak, squares, total, scale, finite, unsound = rows
    n = max(finite, 1.0)
    return Error(maximum, (squares / n) ** 0.5, total / n, (scale / n) ** 0.5, peak, elements, int(unsound))


def _sums(flat: torch.Tensor, truth: torch.Tensor) -> list[float]:
    """What `passes.sums` gives, by PyTorch's operators and in slices."""
    found, most = [0.0] * 7, largest(flat)
    step = min(SLICE, CACHED) if flat.device.type == "cpu" else SLICE
    for start in range(0, flat.numel(), step):
        o = truth[start : start + step].double()
        c = flat[start : start + step].double()
        found = merged(found, _sums_of_finite(c, o, most) or _sums_of_usable(c, o, most))
    return found


def _sums_of_finite(c: torch.Tensor, o: torch.Tensor, most: float) -> list[float] | None:
    """None where not all are finite and smaller than `most`."""
    difference = c - o
    low, high, least, greatest = (float(t) for t in (*torch.aminmax(o), *torch.aminmax(difference)))
    # Not so with NaN either.
    if not (-(1 - EDGE) * most < low <= high < (1 - EDGE) * most and -float("inf") < least <= greatest < float("inf")):
        return None
    squares, scale = (float(torch.dot(t, t)) for t in (difference, o))
    return [max(-least, greatest), max(-low, high), squares, float(difference.sum()), scale, float(o.numel()), 0.0]


def _sums_of_usable(c: torch.Tensor, o: torch.Tensor, most: float) -> list[float]:
    # The largest number of a type is as good as infinite: beside it no other error would count.
    regular = o.abs() < (1 - EDGE) * most
    usable = regular & torch.isfinite(c)
    same = torch.where(regular, torch.isfinite(c), _alike(c, o, most))
    difference = torch.where(usable, c - o, 0.0)
    o = torch.where(usable, o, 0.0)
    return torch.stack(
        [
            difference.abs().max(),
            o.abs().max(),
            difference.square().sum(),
            difference.sum(),
            o.square().sum(),
            usable.sum().double(),
            (~same).sum().double(),
        ]
    ).tolist()


def _alike(c: torch.Tensor, o: torch.Tensor, most: float) -> torch.Tensor:
    """Elementwise: the same value, infinity or NaN, or both at the edge of what is finite. Just the largest number is
    no such edge: it stands where a module puts it."""
    same = (o == c) | (torch.isnan(o) & torch.isnan(c))
    if c.is_complex():
        return same
    edge = (o.abs() > (1 - EDGE) * most) & (o.abs() != most) & torch.isfinite(o)
    return same | (edge & (c.abs() > (1 - 2 * EDGE) * most) & (c * o > 0))


def wrong_elements(output: torch.Tensor, oracle: torch.Tensor, limit: float) -> int:
    """How many elements differ from the oracle by more than `limit`, or are unsound."""
    flat, truth = output.reshape(-1), oracle.reshape(-1)
    wrong = 0
    for start in range(0, flat.numel(), SLICE):
        wrong += int(wrong_mask(flat[start : start + SLICE], truth[start : start + SLICE], limit).sum())
    return wrong


def wrong_mask(output: torch.Tensor, oracle: torch.Tensor, limit: float) -> torch.Tensor:
    """Elementwise: differs by more than `limit`, or is not finite where the oracle is (and the other way round). Of
    `output` the type counts: what is infinite in it."""
    c, o = wide(output), wide(oracle)
    same = _alike(c, o, largest(output))
    return torch.where(torch.isfinite(o) & torch.isfinite(c), ((c - o).abs() > limit) & ~same, ~same)


def worst_element(output: torch.Tensor, oracle: torch.Tensor) -> list[int]:
    """Index of the element furthest from the oracle; unsound ones count as infinitely far."""
    flat, truth = output.reshape(-1), oracle.reshape(-1)
    best, where = -1.0, 0
    for start in range(0, flat.numel(), SLICE):
        c, o = wide(flat[start : start + SLICE]), wide(truth[start : start + SLICE])
        same = _alike(c, o, largest(flat))
        far = torch.where(same, 0.0, torch.nan_to_num((c - o).abs(), nan=float("inf")))
        value, position = far.max(0)
        if float(value) > best:
            best, where = float(value), start + int(position)
    index: list[int] = []
    for size in reversed(output.shape):
        index.append(where % size)
        where //= size
    return list(reversed(index))


def identical(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors hold the same bits."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    x, y = a.contiguous().reshape(-1), b.contiguous().reshape(-1)
    # Comparing whole words makes a mask of an eighth of the size.
    word = torch.int64 if all(t.nbytes % 8 == 0 and t.data_ptr() % 8 == 0 for t in (x, y)) else torch.uint8
    x, y, step = x.view(word), y.view(word), 8 * SLICE // word.itemsize
    return all(torch.equal(x[i : i + step], y[i : i + step]) for i in range(0, x.numel(), step))
