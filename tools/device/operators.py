"""What one ATen operator costs, from its arguments' shapes: multiply-adds of matrix work, and lengths of its sums.

The length of a sum is how many terms go into one element of the output. It bounds how far two correct kernels that add
in different orders may drift apart. Maxima and minima do not round, so they have none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch.utils.flop_counter import flop_registry

Arguments = dict[str, Any]
"""The arguments of an operator by the names of its schema, defaults included."""


def bind(operator: torch._ops.OpOverload, args: Sequence[object], kwargs: dict[str, object]) -> Arguments:
    """Arguments of a call by name."""
    schema = operator._schema.arguments
    given = dict(zip((argument.name for argument in schema), args, strict=False))
    defaults = {argument.name: argument.default_value for argument in schema if argument.has_default_value()}
    return {**defaults, **given, **kwargs}


def name_of(operator: torch._ops.OpOverload) -> str:
    """`aten::relu_` → `relu`: without namespace, overload and the mark of in-place variants."""
    name = operator._schema.name.rpartition("::")[2]
    return name[:-1] if name.endswith("_") and not name.endswith("__") else name


def matrix_flops(
    operator: torch._ops.OpOverload, args: Sequence[object], kwargs: dict[str, object], bound: Arguments, out: object
) -> float:
    """Floating-point operations of matrix products, convolutions, attention and recurrent layers; 0 for all others.

    A multiply-add counts as two, a bias not at all, a masked attention in full.
    """
    formula = flop_registry.get(operator.overloadpacket)
    if formula is not None:
        return float(formula(*args, **kwargs, out_val=out))
    name = name_of(operator)
    if name.startswith("_scaled_dot_product"):  # the CPU's variants have no formula in torch
        query, key, value = bound["query"], bound["key"], bound["value"]
        return 2.0 * math.prod(query.shape[:-1]) * key.shape[-2] * (query.shape[-1] + value.shape[-1])
    if name in ("mv", "dot", "vdot"):
        return 2.0 * bound["self"].numel()
    if name == "addmv":
        return 2.0 * bound["mat"].numel()
    if name == "_trilinear":
        return 2.0 * bound["i1"].shape[0] * bound["i2"].numel()
    if name in ("_int_mm", "linear"):
        weight = bound["mat2"] if name == "_int_mm" else bound["weight"]
        return 2.0 * bound["self" if name == "_int_mm" else "input"].numel() * (weight.numel() // _sums(name, bound))
    if name in ("_cudnn_rnn", "mkldnn_rnn_layer"):
        # Every weight matrix meets every step of every sequence once.
        weights = bound["weight"] if name == "_cudnn_rnn" else [bound["weight0"], bound["weight1"]]
        steps = math.prod(bound["input"].shape[:-1])
        return 2.0 * steps * sum(weight.numel() for weight in weights if weight.dim() == 2)
    return 0.0


def reduction_length(operator: torch._ops.OpOverload, bound: Arguments, out: object) -> int:
    """Terms that go into one element of the output; 1 for operators that do not sum, or that are not known here."""
    name = name_of(operator)
    try:
        return max(1, _sums(name, bound, out))
    except (KeyError, AttributeError, IndexError, TypeError, ZeroDivisionError):
        return 1  # another version's schema: no allowance is better than no verdict


def is_vector_work(operator: torch._ops.OpOverload) -> bool:
    """Whether it does arithmetic or comparisons element by element, alone or on the way to a sum or an extremum."""
    name = name_of(operator)
    known = name in _RULES or name in _FULL_REDUCTIONS or name in _LOSSES or name in _EXTREMA
    return known or torch.Tag.pointwise in operator.tags


def _sums(name: str, bound: Arguments, out: object = None) -> int:
    rule = _RULES.get(name)
    if rule is not None:
        return int(rule(bound))
    if name in _FULL_REDUCTIONS:
        outputs = [out] if isinstance(out, torch.Tensor) else out
        return int(bound["self"].numel() // max(1, outputs[0].numel()))  # pyright: ignore[reportIndexIssue, reportOptionalSubscript]
    if name in _LOSSES:
        return int(bound["self"].numel()) if bound.get("reduction") else 1
    return 1


def _along(tensor: torch.Tensor, dim: int) -> int:
    return tensor.shape[dim] if tensor.dim() else 1


def _convolution(bound: Arguments) -> int:
    weight = bound["weight"]
    if bound.get("transposed"):  # weight is (C_in, C_out/groups, …)
        return weight.shape[0] // bound["groups"] * math.prod(weight.shape[2:])
    return math.prod(weight.shape[1:])


def _batch_norm(bound: Arguments) -> int:
    trains = bound.get("training", bound.get("train", True))
    return bound["input"].numel() // bound["input"].shape[1] if trains else 1


def _group_norm(bound: Arguments) -> int:
    return bound["C"] * bound["HxW"] // bound["group"]


def _window(bound: Arguments) -> int:
    """Pooling windows: `kernel_size` may hold one number for all dimensions."""
    kernel = bound["kernel_size"]
    return math.prod(kernel) if len(kernel) > 1 else kernel[0] ** (bound["self"].dim() - 2)


def _adaptive(bound: Arguments) -> int:
    size = bound["output_size"]
    return math.prod(math.ceil(have / want) for have, want in zip(bound["self"].shape[-len(size) :], size, strict=True))


def _attention(bound: Arguments) -> int:
    return max(bound["key"].shape[-2], bound["query"].shape[-1])


_RULES: dict[str, Callable[[Arguments], int]] = {
    "mm": lambda a: a["self"].shape[-1],
    "bmm": lambda a: a["self"].shape[-1],
    "addmm": lambda a: a["mat1"].shape[-1],
    "baddbmm": lambda a: a["batch1"].shape[-1],
    "mv": lambda a: a["self"].shape[-1],
    "addmv": lambda a: a["mat"].shape[-1],
    "dot": lambda a: a["self"].numel(),
    "vdot": lambda a: a["self"].numel(),
    "linear": lambda a: a["weight"].shape[-1],
    "_int_mm": lambda a: a["self"].shape[-1],
    "_scaled_mm": lambda a: a["self"].shape[-1],
    "convolution": _convolution,
    "_convolution": _convolution,
    "_trilinear": lambda a: math.prod(a["i2"].shape[1:]),  # nn.Bilinear; i2 is its weight (out, in1, in2)
    "_cudnn_rnn": lambda a: max(weight.shape[-1] for weight in a["weight"]),
    "mkldnn_rnn_layer": lambda a: max(a["weight0"].shape[-1], a["weight1"].shape[-1]),
    "_softmax": lambda a: _along(a["self"], a["dim"]),
    "_safe_softmax": lambda a: _along(a["self"], a["dim"]),
    "_log_softmax": lambda a: _along(a["self"], a["dim"]),
    "cumsum": lambda a: _along(a["self"], a["dim"]),
    "cumprod": lambda a: _along(a["self"], a["dim"]),
    "logcumsumexp": lambda a: _along(a["self"], a["dim"]),
    "_logcumsumexp": lambda a: _along(a["self"], a["dim"]),
    "native_layer_norm": lambda a: math.prod(a["normalized_shape"]),
    "_fused_rms_norm": lambda a: math.prod(a["normalized_shape"]),
    "native_group_norm": _group_norm,
    "native_batch_norm": _batch_norm,
    "cudnn_batch_norm": _batch_norm,
    "_native_batch_norm_legit": _batch_norm,
    "_native_batch_norm_legit_functional": _batch_norm,
    "_batch_norm_with_update": _batch_norm,
    "avg_pool1d": _window,
    "avg_pool2d": _window,
    "avg_pool3d": _window,
    "_adaptive_avg_pool2d": _adaptive,
    "_adaptive_avg_pool3d": _adaptive,
    "_scaled_dot_product_flash_attention_for_cpu": _attention,
    "_scaled_dot_product_flash_attention": _attention,
    "_scaled_dot_product_efficient_attention": _attention,
    "_scaled_dot_product_cudnn_attention": _attention,
    "_scaled_dot_product_fused_attention_overrideable": _attention,
    "_embedding_bag": lambda a: math.ceil(a["indices"].numel() / max(1, a["offsets"].numel())),
    "_embedding_bag_forward_only": lambda a: math.ceil(a["indices"].numel() / max(1, a["offsets"].numel())),
    "scatter_add": lambda a: _along(a["src"], a["dim"]),
    "scatter_reduce": lambda a: _along(a["src"], a["dim"]),
    "index_add": lambda a: _along(a["source"], a["dim"]),
    "nll_loss_forward": lambda a: a["target"].numel() if a["reduction"] else 1,
    "nll_loss2d_forward": lambda a: a["target"].numel() if a["reduction"] else 1,
    "_cdist_forward": lambda a: a["x1"].shape[-1],
    "_ctc_loss": lambda a: a["log_probs"].shape[0],
    "trace": lambda a: min(a["self"].shape),
}

# Sums over some or all dimensions: as many terms as the input has elements for one of the output.
_FULL_REDUCTIONS = frozenset(
    ["sum", "nansum", "mean", "var", "var_mean", "std", "std_mean", "prod", "norm", "linalg_vector_norm", "logsumexp"]
)

# Losses with a `reduction` argument (0: none).
_LOSSES = frozenset(
    [
        "mse_loss",
        "smooth_l1_loss",
        "huber_loss",
        "soft_margin_loss",
        "binary_cross_entropy",
        "multi_margin_loss",
        "multilabel_margin_loss_forward",
    ]
)

_EXTREMA = frozenset(
    """max min amax amin aminmax argmax argmin cummax cummin sort topk kthvalue median
    max_pool2d_with_indices max_pool3d_with_indices adaptive_max_pool2d adaptive_max_pool3d""".split()  # noqa: SIM905
)
