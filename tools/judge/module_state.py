"""Buffers that a module's own forward changes, such as the running statistics of a batch normalisation.

Every forward that the judge asks for starts from the state that the module was constructed with, the reference's as the
candidate's: a verdict may not hang on how many calls came before. What a forward leaves there counts as its result.
Only what a state_dict holds is looked at; a buffer that is not persistent has no name that a candidate could share.
"""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable

import torch
from torch.nn.modules.batchnorm import _BatchNorm, _NormBase  # pyright: ignore[reportPrivateUsage]

from tools.judge.errors import identical

State = dict[str, torch.Tensor]


def changed(before: torch.nn.Module, after: torch.nn.Module) -> tuple[str, ...]:
    """Names of the persistent buffers whose values differ between two copies of a module, shape and dtype alike."""
    kept, now = before.state_dict(), after.state_dict()
    return tuple(
        name
        for name, _ in before.named_buffers()
        if name in kept
        and name in now
        and (kept[name].shape, kept[name].dtype) == (now[name].shape, now[name].dtype)
        and not identical(kept[name], now[name])
    )


def copied(model: torch.nn.Module, names: Iterable[str]) -> State:
    """The values of those buffers, in memory of their own."""
    return {name: model.get_buffer(name).detach().clone() for name in names}


@contextlib.contextmanager
def steady(model: torch.nn.Module, names: Iterable[str], after: State) -> Generator[None]:
    """Run a forward inside; its values of the buffers `names` go to `after`, and the module gets back those it had."""
    held = [(name, *_owner(model, name)) for name in names]
    before = copied(model, (name for name, _, _ in held))
    tensors = [owner.get_buffer(leaf) for _, owner, leaf in held]
    after.clear()
    try:
        yield
        after.update(copied(model, (name for name, _, _ in held)))
    finally:
        with torch.no_grad():
            for (name, owner, leaf), tensor in zip(held, tensors, strict=True):
                # A forward may have put another tensor in its place.
                tensor.copy_(before[name])
                setattr(owner, leaf, tensor)


def put(model: torch.nn.Module, values: State) -> None:
    """Give a module's buffers those values, in place."""
    with torch.no_grad():
        for name, value in values.items():
            model.get_buffer(name).copy_(value)


def counters(model: torch.nn.Module) -> frozenset[str]:
    """Names of the batch counters that nothing depends on: those of normalisations with a fixed momentum.

    `F.batch_norm` leaves them alone too, so that a candidate which calls it is not wrong for that.
    """
    return frozenset(
        f"{name}.num_batches_tracked".lstrip(".")
        for name, module in model.named_modules()
        if isinstance(module, _NormBase) and module.momentum is not None
    )


def update_rule(model: torch.nn.Module, name: str) -> str:
    """How the module updates that buffer, where it is known: words that complete "the reference …", else empty."""
    owner, leaf = _owner(model, name)
    of = {"running_mean": "mean", "running_var": "variance (divided by n - 1)"}.get(leaf)
    if not isinstance(owner, _BatchNorm):
        return ""
    if leaf == "num_batches_tracked":
        return "adds 1 to it in every forward"
    if of is None:
        return ""
    if owner.momentum is None:
        return f"makes it the average of each batch's {of} over all forwards so far"
    return f"makes it {1 - owner.momentum:g} of its old value plus {owner.momentum:g} of the batch's {of}"


def _owner(model: torch.nn.Module, name: str) -> tuple[torch.nn.Module, str]:
    path, _, leaf = name.rpartition(".")
    return model.get_submodule(path), leaf
