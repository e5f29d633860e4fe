"""How a problem's inputs and weights may be replaced where its own are of a scale at which it means nothing.

Shapes and dtypes stay, and so do integer and bool values, which may be indices or masks, buffers and frozen
parameters.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Repair:
    """`input` makes an input of a drawn one, `weight` a weight of a constructed one; None leaves them as they are.

    The generator is on the tensor's own device. `words` complete "judged with …".
    """

    words: str
    input: Callable[[torch.Tensor, torch.Generator], torch.Tensor] | None = None
    weight: Callable[[torch.Tensor, torch.Generator], torch.Tensor] | None = None

    def inputs(self, tensors: list[torch.Tensor], seed: int) -> list[torch.Tensor]:
        """The inputs in place of those drawn under `seed`."""
        if self.input is None:
            return tensors
        made = self.input
        generators = {t.device: torch.Generator(t.device).manual_seed(seed) for t in tensors}
        return [made(t, generators[t.device]) if t.is_floating_point() else t for t in tensors]

    def weights(self, model: torch.nn.Module, seed: int) -> None:
        """Replace the weights of a model that was constructed under `seed` on the CPU, in place."""
        if self.weight is None:
            return
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad and parameter.is_floating_point():
                    parameter.copy_(self.weight(parameter, generator))


def _normal(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    # In the layout of the tensor itself, which the shared buffers were laid out for.
    values = torch.randn(tensor.shape, generator=generator, device=tensor.device)
    return torch.empty_like(tensor).copy_(values)


def _normal_if_constant(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    constant = tensor.numel() > 1 and bool((tensor == tensor.reshape(-1)[0]).all())
    return _normal(tensor, generator) if constant else tensor


def _positive(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    values = torch.rand(tensor.shape, generator=generator, device=tensor.device)
    return torch.empty_like(tensor).copy_(0.01 + 0.98 * values)


def _times(factor: float) -> Callable[[torch.Tensor, torch.Generator], torch.Tensor]:
    return lambda tensor, _: tensor * factor


def _normal_weight(tensor: torch.Tensor, generator: torch.Generator) -> torch.Tensor:
    """Such that sums over the inputs of a layer keep the scale of what goes in; biases and gains spread round
    their place."""
    values = _normal(tensor, generator)
    if tensor.dim() >= 2:
        return values / (tensor.numel() / tensor.shape[0]) ** 0.5
    return values * 0.5 + (1.0 if tensor.numel() and bool((tensor == 1).all()) else 0.0)


REPAIRS = (
    Repair("normally distributed values in place of constant inputs", input=_normal_if_constant),
    Repair("its inputs 100 times smaller", input=_times(1e-2)),
    Repair("its inputs 100 times larger", input=_times(1e2)),
    Repair("its inputs 10000 times smaller", input=_times(1e-4)),
    Repair("its inputs 10000 times larger", input=_times(1e4)),
    Repair("normally distributed inputs", input=_normal),
    Repair("inputs drawn evenly between 0.01 and 0.99", input=_positive),
    Repair("normally distributed weights", weight=_normal_weight),
    Repair("its weights 100 times larger", weight=_times(1e2)),
    Repair("normally distributed inputs and weights", input=_normal, weight=_normal_weight),
    Repair("its inputs and weights 100 times larger", input=_times(1e2), weight=_times(1e2)),
)
"""From the least to the most intrusive."""
