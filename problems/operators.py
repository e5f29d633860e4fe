"""Names of PyTorch operators and what is known of each kind by its name alone."""

from __future__ import annotations

import ast

ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.Pow: "pow",
    ast.MatMult: "matmul",
}

DTYPES = {
    "float64": "float64",
    "double": "float64",
    "float32": "float32",
    "float16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "float8_e4m3fn": "float8_e4m3fn",
    "float8_e5m2": "float8_e5m2",
    "int8": "int8",
    "uint8": "uint8",
    "int32": "int32",
    "int64": "int64",
    "long": "int64",
}
"""Attributes that name a dtype (`torch.half`, `x.half()`), with the dtype's own name."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NO_OPERATORS = _words(
    """Parameter ParameterList ParameterDict ModuleList ModuleDict Sequential Module Identity device dtype Size Tensor
    Generator manual_seed no_grad enable_grad inference_mode is_tensor is_floating_point get_default_dtype finfo iinfo
    set_default_dtype zeros_like ones_like empty_like full_like zeros ones empty full tensor as_tensor from_numpy
    arange linspace eye
    """
)
"""Calls into torch that build things rather than compute with an input."""

_TENSOR_METHODS = _words(
    """abs add addmm all amax amin any argmax argmin argsort bmm ceil clamp clip conj contiguous copysign cos cosh
    cummax cummin cumprod cumsum diff div dot einsum erf exp expm1 flip floor fmod gather ger index_add index_select
    kthvalue log log10 log1p log2 log_softmax logsumexp masked_fill masked_select matmul max maximum mean median min
    minimum mm mode mul multinomial mv nansum neg norm outer pow prod quantile reciprocal relu repeat roll round rsqrt
    scatter scatter_add scatter_reduce sigmoid sign sin sinh softmax sort sqrt square std sub sum tan tanh topk
    transpose tril triu trunc unfold unique var where bernoulli
    """
)
"""Methods that are taken for a tensor's. Names that strings, lists or dicts share (`count`, `index`) are left out."""

_RANDOM = _words(
    """rand randn randint randperm normal bernoulli multinomial poisson rand_like randn_like randint_like
    gumbel_softmax normal_ uniform_ bernoulli_ exponential_ geometric_ log_normal_ cauchy_ random_ rrelu RReLU
    """
)

_NONDETERMINISTIC = _words(
    """index_add index_add_ index_put index_put_ scatter_add scatter_add_ scatter_reduce scatter_reduce_ put_ bincount
    histc kthvalue median nanmedian EmbeddingBag embedding_bag cumsum CTCLoss ctc_loss
    """
)
"""Forward operators that PyTorch's notes on `use_deterministic_algorithms` list for CUDA."""


def last(name: str) -> str:
    """`torch.nn.Conv2d` → `Conv2d`."""
    return name.rpartition(".")[2]


def is_operator(full: str) -> bool:
    """Whether a resolved call is an operator of PyTorch (initialisers, containers and constructors are not)."""
    if not full.startswith("torch.") or full.startswith(("torch.nn.init.", "torch.cuda.", "torch.backends.")):
        return False
    return last(full) not in _NO_OPERATORS


def is_module(full: str) -> bool:
    """Whether a resolved call constructs a module, such as `torch.nn.Conv2d`."""
    return is_operator(full) and full.startswith("torch.nn.") and last(full)[0].isupper()


def is_tensor_method(name: str) -> bool:
    return name in _TENSOR_METHODS or (is_in_place(name) and (name[:-1] in _TENSOR_METHODS or name in _RANDOM))


def is_in_place(name: str) -> bool:
    """`relu_`, but not `__add__`; `requires_grad_` changes no values."""
    short = last(name)
    return short.endswith("_") and not short.endswith("__") and short != "requires_grad_"


def is_dropout(name: str) -> bool:
    return "dropout" in last(name).lower()


def is_random(name: str) -> bool:
    return last(name) in _RANDOM or is_dropout(name)


def is_nondeterministic(name: str) -> bool:
    return last(name) in _NONDETERMINISTIC


def depends_on_mode(name: str) -> bool:
    """Whether a module behaves differently in train and eval mode."""
    short = last(name)
    return is_dropout(short) or short == "RReLU" or ("BatchNorm" in short)
