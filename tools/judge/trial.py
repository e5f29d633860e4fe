"""One set of inputs with what is expected on it: what a candidate's output is held against."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import torch

from tools.judge.errors import Error, measure
from tools.judge.limits import SPECIAL_RELATIVE
from tools.judge.module_state import State
from tools.judge.truth import Truth


@dataclass(frozen=True)
class Change:
    """What one forward makes of a buffer of the module: its values before, after the reference's forward and, as
    `truth`, after the oracle's; `error` is that of `after`."""

    name: str
    before: torch.Tensor
    after: torch.Tensor
    truth: torch.Tensor
    error: Error


INACCURATE = 0.05
"""Relative error of a reference that nothing can be held against."""


def is_sound(errors: list[Error], reference: list[torch.Tensor], usual: list[float] | None) -> bool:
    """Whether the reference is near enough to the oracle for others to be held against it. `usual` are its relative
    errors on the problem's own inputs, given where only gross errors count: its own have to be smaller than those."""
    for i, (error, output) in enumerate(zip(errors, reference, strict=True)):
        most = INACCURATE
        if usual is not None:
            most = min(INACCURATE, max(SPECIAL_RELATIVE / 10, 8 * usual[i] if i < len(usual) else 0.0))
        if error.unsound or (output.is_floating_point() and error.scale > 0 and error.relative >= most):
            return False
    return True


def changes(before: State, after: State, truth: State) -> list[Change]:
    """What a forward made of each buffer: its values before, after the reference's and after the oracle's."""
    exact = {name: truth[name].to(value.device) for name, value in after.items()}
    return [Change(n, before[n], v, exact[n], measure(v, exact[n])) for n, v in after.items()]


@dataclass
class Trial:
    """One set of inputs with what the reference and the oracle make of it. Tensors are on the device."""

    kind: str
    seed: int
    spec: dict[str, Any]
    tensors: list[torch.Tensor]
    outputs: dict[str, Any]
    reference: list[torch.Tensor]
    truth: Truth
    errors: list[Error] = field(default_factory=list)
    sound: bool = True
    mutated: list[int] = field(default_factory=list)
    """Indices of inputs that the reference changes without returning them; their final values count as outputs behind
    the others."""

    may_change: list[int] = field(default_factory=list)
    """Indices of all inputs that the reference itself changes."""

    state: list[Change] = field(default_factory=list)
    """Buffers that the reference's forward changes."""

    refused: bool = False
    """Whether the reference raised on these inputs, or gave outputs of another shape: nothing of it is to be used."""

    model: torch.nn.Module | None = None
    """The oracle's, where its weights are not those of the bench's."""

    @staticmethod
    def refusal(kind: str, seed: int, spec: dict[str, Any], tensors: list[torch.Tensor]) -> Trial:
        """A trial on inputs that the reference refuses."""
        nothing = Truth([], list[torch.Tensor], lambda: iter(()))
        return Trial(kind, seed, spec, tensors, {}, [], nothing, sound=False, refused=True)

    def unlike(self) -> Trial:
        """The trial as one that nothing is to be held against."""
        return replace(self, sound=False, refused=True)

    @property
    def returned(self) -> list[torch.Tensor]:
        """What the reference returns, without the inputs that it changes besides."""
        return self.reference[: len(self.reference) - len(self.mutated)]

    @property
    def nans(self) -> list[bool]:
        """For each output of the reference whether there is a NaN in it."""
        return [t.is_floating_point() and bool(torch.isnan(t).any()) for t in self.reference]

    @property
    def oracle(self) -> list[torch.Tensor]:
        """The oracle's outputs, whole: where memory is short they are made for the asking."""
        return self.truth.outputs()

    @property
    def bytes(self) -> int:
        kept = [t for change in self.state for t in (change.before, change.after, change.truth)]
        return self.truth.bytes + sum(t.nbytes for group in (self.tensors, self.reference, kept) for t in group)
