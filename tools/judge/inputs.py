"""The inputs that a candidate is checked on: the problem's own distribution, and others that it must survive.

Kinds besides `own` exist to unmask code that is right by luck or by looking: overflow without a maximum subtracted, a
reduction that starts at zero, paths chosen by magnitude, work skipped for special values, remembered answers. A kind
counts only where the reference itself is sound on it.
"""

from __future__ import annotations

import torch

OWN = "own"
ELEMENT = "one_element"
SPECIAL = (
    "scaled_up",
    "scaled_down",
    "shifted_down",
    "shifted_up",
    "negated",
    "sparse",
    "ties",
    "mostly_zero",
    "mostly_one",
    "uneven",
    "far_down",
    "one_large",
    "one_huge",
)
HUGE = "one_huge"
"""One element is a tenth of a sum of sizes, and nearly all of a sum of squares; the others look as ever. Whoever takes
a part of the data for the whole, and all of it only where what it sees is unusual, does not see this one. (Were it more
than the sum, one float accumulator would lose the others behind it.)"""

FAR = "far_down"
"""So far from zero that exp underflows. Every digit of a variance may be lost there: as much is forgiven as eleven bits
of the inputs cost (`sensitivity.far_error`), so that a maximum which starts at zero is not."""

TIED = ("sparse", "ties", "mostly_zero", "mostly_one", "uneven", "far_down")
"""Kinds on which an index output (argmax) is not unique, or hangs on the last bits."""

SHIFT = 16.0
"""Far enough that a maximum which starts at zero is wrong, near enough that a variance in one pass is still right; what
overflows shows when inputs are scaled up."""

FAR_SHIFT = 120.0
FAR_SPREAD = 30.0
"""Spread as well: of values that hardly differ a variance in one pass may come out negative, which is honest."""

PEAK = 100.0
"""The largest element of `uneven`, over the mean size of the problem's own."""

SHARE_OF_REST = 0.1
"""What all small elements of `uneven` sum up to, over its largest."""

LARGEST = 1e3
"""The size of the element of `one_large`, over the mean size of the problem's own."""

LARGE = 12
SAMPLE = 1 << 16


def other_draws(seed: int, device: str) -> torch.Generator:
    """Random numbers that go with the inputs drawn under `seed`, and are others than theirs: a mask made of the very
    numbers that the inputs are would pick the smallest of them."""
    return torch.Generator(device).manual_seed((seed ^ 0x5EED5EED) % 2**31)


def derive(
    kind: str, tensors: list[torch.Tensor], generator: torch.Generator, *, across: bool = False
) -> list[torch.Tensor]:
    """Inputs of `kind` made from the problem's own ones. Integer and bool inputs (indices, masks) are left alone. An
    outlier lies, with `across`, where the same generator would not have put it: opposite, by every index."""
    if kind in ("one_large", HUGE):
        return _one_outlier(tensors, generator, None if kind == HUGE else LARGEST, across=across)
    return [_derive(kind, t, generator, i) if t.is_floating_point() else t for i, t in enumerate(tensors)]


def _derive(kind: str, t: torch.Tensor, generator: torch.Generator, which: int) -> torch.Tensor:
    if kind == "scaled_up":
        return t * 1e3
    if kind == "scaled_down":
        return t * 1e-3
    if kind == "shifted_down":
        return t - SHIFT
    if kind == "shifted_up":
        return t + SHIFT
    if kind == FAR:
        return -(FAR_SHIFT + FAR_SPREAD * t.abs())
    if kind == "negated":
        return -t
    if kind == "sparse":
        keep = torch.rand(t.shape, generator=generator, device=t.device) < 0.1
        return torch.where(keep, t, torch.zeros((), dtype=t.dtype, device=t.device))
    if kind in ("mostly_zero", "mostly_one"):
        # A hundredth differs: code that samples a few elements takes it for constant.
        keep = torch.rand(t.shape, generator=generator, device=t.device) < 0.01
        return torch.where(keep, 4 * t + 1, torch.full((), float(kind == "mostly_one"), dtype=t.dtype, device=t.device))
    if kind == "ties":
        return torch.round(t * 4) / 4
    if kind == "uneven":
        return _uneven(t, generator, which)
    raise ValueError(kind)


def _uneven(t: torch.Tensor, generator: torch.Generator, which: int) -> torch.Tensor:
    """Nearly all of the size of input `which` lies in a few single elements at random places, each a third as large as
    the one before; the rest is small, yet not zero, so that no norm vanishes.

    A mean of 1e9 alike values hardly changes when it is taken over half of them, and the limit for so long a sum lets
    that pass. Here one element makes up more than half of a sum, so that no half can stand for the whole.
    """
    count = t.numel()
    # No smaller than the sum needs, or an epsilon under a norm decides; fp16 has no smaller ones than that.
    rest = 1e-3 if t.dtype is torch.float16 else min(1e-3, max(1e-7, SHARE_OF_REST * PEAK / max(count, 1)))
    made = t * rest
    # A fresh product has no gaps: its memory as one row, whatever its strides.
    row = made.as_strided((count,), (1,))
    sample = row[:: max(1, count // SAMPLE)].double().abs() / rest
    sample = sample[torch.isfinite(sample)]
    if not sample.numel():
        return made
    places = torch.randint(count, (min(LARGE, max(1, count // 8)),), generator=generator, device=t.device)
    # Were the largest of two inputs alike, a half with one of them would do for both.
    sizes = PEAK / 7.0 ** min(which, 3) / 3.0 ** torch.arange(len(places), device=t.device, dtype=torch.float64)
    signs = torch.where(row[places] < 0, -1.0, 1.0)
    row[places] = (signs * sizes * sample.mean()).to(t.dtype)
    return made


def _one_outlier(
    tensors: list[torch.Tensor], generator: torch.Generator, factor: float | None, *, across: bool
) -> list[torch.Tensor]:
    """The same inputs with one element of one of them `factor` times as large as the mean, None for a tenth of the sum
    of all."""
    chosen = [i for i, t in enumerate(tensors) if t.is_floating_point() and t.numel()]
    if not chosen:
        return list(tensors)
    which = chosen[_pick(len(chosen), generator)]
    changed = tensors[which].clone(memory_format=torch.preserve_format)
    put_outlier(changed, generator, factor, across=across)
    return [changed if i == which else t for i, t in enumerate(tensors)]


def put_outlier(
    tensor: torch.Tensor, generator: torch.Generator, factor: float | None, *, across: bool = False
) -> tuple[tuple[int, ...], float]:
    """Make one element at a random place, or `across` from it, an outlier, in place. Returns its index and what was
    there before."""
    index = tuple(_pick(size, generator) for size in tensor.shape)
    if across:
        index = tuple(size - 1 - i for size, i in zip(tensor.shape, index, strict=True))
    before = float(tensor[index])
    mean = float(tensor.double().abs().mean()) if tensor.numel() <= SAMPLE else _mean_size(tensor)
    size = min((0.1 * tensor.numel() if factor is None else factor) * mean, torch.finfo(tensor.dtype).max / 4)
    tensor[index] = -size if before < 0 else size
    return index, before


def _mean_size(tensor: torch.Tensor) -> float:
    """The mean size of a sample of the elements."""
    rows = tensor.reshape(-1) if tensor.is_contiguous() else tensor.flatten(0)
    return float(rows[:: tensor.numel() // SAMPLE].double().abs().mean())


def change_one_element(tensors: list[torch.Tensor], generator: torch.Generator) -> tuple[list[torch.Tensor], str]:
    """The same inputs with one element of one floating tensor changed plainly; also says which."""
    floating = [i for i, t in enumerate(tensors) if t.is_floating_point() and t.numel()]
    if not floating:
        return list(tensors), ""
    which = floating[_pick(len(floating), generator)]
    changed = tensors[which].clone(memory_format=torch.preserve_format)
    index = tuple(_pick(size, generator) for size in changed.shape)
    step = max(1.0, float(changed.float().abs().mean()))
    changed[index] = -changed[index] - 3.0 * step if float(changed[index]) >= 0 else -changed[index] + 3.0 * step
    return [changed if i == which else t for i, t in enumerate(tensors)], f"input {which} at {list(index)}"


def shake(tensor: torch.Tensor, relative: float, generator: torch.Generator) -> torch.Tensor:
    """Every value changed by up to `relative` of itself, at random."""
    noise = torch.rand(tensor.shape, generator=generator, device=tensor.device, dtype=tensor.dtype)
    return tensor * (1 + relative * (2 * noise - 1))


def _pick(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator, device=generator.device))
