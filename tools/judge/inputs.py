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
)
TIED = ("sparse", "ties", "mostly_zero", "mostly_one", "uneven")
"""Kinds on which an index output (argmax) is not unique, or hangs on the last bits."""

SHIFT = 16.0
"""Far enough that a maximum which starts at zero is wrong, near enough that a variance in one pass is still right; what
overflows shows when inputs are scaled up."""

PEAK = 100.0
"""The largest element of `uneven`, over the mean size of the problem's own."""

LARGE = 12
SAMPLE = 1 << 16


def derive(kind: str, tensors: list[torch.Tensor], generator: torch.Generator) -> list[torch.Tensor]:
    """Inputs of `kind` made from the problem's own ones. Integer and bool inputs (indices, masks) are left alone."""
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
    # fp16 has no smaller ones.
    rest = 1e-3 if t.dtype is torch.float16 else 1e-7
    made = t * rest
    count = made.numel()
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


def splice(target: torch.Tensor, donor: torch.Tensor, generator: torch.Generator) -> None:
    """Overwrite a random run of `target` by values of `donor`, another draw of the same input, in place.

    Keeps every timed call's values new at a thousandth of the cost of drawing them.
    """
    count = target.numel()
    if count < 2 or not (target.is_contiguous() and donor.is_contiguous()):
        target.copy_(donor)
        return
    length = max(1, min(4096, count // 8))
    at, source = _pick(count - length + 1, generator), _pick(count - length + 1, generator)
    target.view(-1)[at : at + length].copy_(donor.view(-1)[source : source + length])


def _pick(count: int, generator: torch.Generator) -> int:
    return int(torch.randint(count, (), generator=generator, device=generator.device))
