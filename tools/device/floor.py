"""The least time that a problem needs on a device: what its graph has to move and to compute, over the device's rates.

Bytes are the inputs, the weights that are used and the outputs, each once, as if everything in between stayed on chip.
FLOPs are those of matrix work, by formula, plus one for each element that an element-wise operator or a reduction
touches. The latter is an approximation from below: a square root or an exponential counts no more than an addition.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any, Literal

import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tools.device.operators import bind, is_vector_work, matrix_flops, name_of, reduction_length
from tools.types import DeviceInfo

_FORMATS = {torch.float64: "fp64", torch.float32: "fp32", torch.bfloat16: "bf16", torch.float16: "fp16"}
_NARROW = {torch.int8: "int8", torch.uint8: "int8"}
# Operators that pass a tensor on or allocate one, and do no work.
_PASSIVE = frozenset(["detach", "alias", "lift_fresh", "empty", "empty_like", "empty_strided", "new_empty"])
# Formats from wide to narrow: a rate for one is also a rate for those behind it, whose values it can hold.
_ORDER = ("fp64", "fp32", "tf32", "fp16", "bf16", "fp8")


@dataclass(frozen=True)
class ProblemCost:
    """What one forward moves and computes.

    `matrix_dtype` (`tf32`, `fp32`, …) is the format of most of the matrix work as the reference runs it, None when
    there is none. `reduction_length` is the longest sum of any operator. `operators` are ATen names in order.
    """

    bytes_moved: int
    matrix_flops: float
    vector_flops: float
    matrix_dtype: str | None
    reduction_length: int
    operators: list[str]

    @property
    def flops(self) -> float:
        return self.matrix_flops + self.vector_flops


@dataclass(frozen=True)
class Floor:
    """Least time in microseconds by measured rates, and by the datasheet's where the device has one.

    With `cached`, all that is moved fits into the last-level cache, where a kernel may beat the memory's rate: the
    floor is then no bound. The compute part holds for multiplying as the definition says: Winograd's algorithm, or a
    triangular factor that the operator does not know of, can honestly beat it.
    """

    us: float
    limited_by: Literal["memory", "compute"]
    memory_us: float
    compute_us: float
    datasheet_us: float | None
    cached: bool


def problem_cost(model: nn.Module, inputs: list[Any]) -> ProblemCost:
    """Costs of `model(*inputs)`, read off the operators of one forward.

    The forward runs on copies of model and inputs (a model that can't be copied runs itself), and leaves the random
    generators as they were. Where memory is short, or model and inputs are on `meta`, it runs on stand-ins without
    data: that takes no memory, but a second to import. Raises what the forward raises.
    """
    if any(tensor.is_meta for tensor in _tensors([inputs, _weights(model)])):
        return _fake_cost(model, inputs)
    try:
        return _real_cost(model, inputs)
    except (torch.OutOfMemoryError, MemoryError):
        return _fake_cost(model, inputs)


def floor(cost: ProblemCost, info: DeviceInfo) -> Floor:
    """The larger of memory time and compute time. `ValueError` when the device's bandwidth is unknown."""
    measured = info.measured_bandwidth or info.peak_bandwidth
    if measured is None:
        raise ValueError("the device's bandwidth is unknown: measure it first (tools.device.rates)")
    memory = cost.bytes_moved / measured * 1e6
    compute = _compute_us(cost, info.measured_flops or info.peak_flops)
    datasheet = None
    if info.peak_bandwidth is not None:
        datasheet = max(cost.bytes_moved / info.peak_bandwidth * 1e6, _compute_us(cost, info.peak_flops))
    last_level = info.l3_bytes or info.l2_bytes or 0
    return Floor(
        us=max(memory, compute),
        limited_by="memory" if memory >= compute else "compute",
        memory_us=memory,
        compute_us=compute,
        datasheet_us=datasheet,
        cached=cost.bytes_moved <= last_level,
    )


def _compute_us(cost: ProblemCost, rates: dict[str, float]) -> float:
    """Matrix units and ordinary cores work side by side, so the longer of the two counts."""
    vector = cost.vector_flops / rates["fp32"] if "fp32" in rates else 0.0
    rate = _rate(cost.matrix_dtype, rates) if cost.matrix_dtype else None
    matrix = cost.matrix_flops / rate if rate else 0.0
    return max(vector, matrix) * 1e6


def _rate(dtype: str, rates: dict[str, float]) -> float | None:
    """The fastest known rate at which work in this format can be done: in it, or in a wider one."""
    if dtype not in _ORDER:
        return rates.get(dtype)
    wider = _ORDER[: _ORDER.index(dtype) + 1]
    return max((rates[name] for name in wider if name in rates), default=None)


@dataclass
class _Tally:
    matrix_by_format: dict[str, float] = field(default_factory=dict)
    vector_flops: float = 0.0
    reduction_length: int = 1
    operators: dict[str, None] = field(default_factory=dict)
    read: dict[int, int] = field(default_factory=dict)
    written: set[int] = field(default_factory=set)


class _Counter(TorchDispatchMode):
    """Watches the operators of one forward. `sources` are the storages that exist beforehand, with their bytes."""

    def __init__(self, sources: dict[int, int], device: str) -> None:
        super().__init__()
        self._sources = sources
        self._device = device
        self._produced: set[int] = set()
        self.tally = _Tally()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing is compiled here; skipping Dynamo would import all of it, which takes a second

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        if isinstance(func, torch._ops.OpOverload):
            self._count(func, args, kwargs, out)
        return out

    def _count(self, func: torch._ops.OpOverload, args: Any, kwargs: dict[str, Any], out: Any) -> None:
        tally = self.tally
        bound = bind(func, args, kwargs)
        name = name_of(func)
        tensors = _tensors([args, kwargs])
        produced = _tensors(out)
        if not func.is_view and name not in _PASSIVE:
            self._touch(func, name, bound)
        self._produced.update(_storage(tensor) for tensor in produced)
        if func.is_view or name in _PASSIVE or func.namespace == "prim":
            return
        tally.operators[name] = None
        tally.reduction_length = max(tally.reduction_length, reduction_length(func, bound, out))
        matrix = matrix_flops(func, args, kwargs, bound, out)
        if matrix:
            dtype = self._format(name, tensors)
            tally.matrix_by_format[dtype] = tally.matrix_by_format.get(dtype, 0.0) + matrix
        elif is_vector_work(func):
            tally.vector_flops += float(max((tensor.numel() for tensor in [*tensors, *produced]), default=0))

    def _touch(self, func: torch._ops.OpOverload, name: str, bound: dict[str, Any]) -> None:
        """Notes which storages from outside an operator reads and writes. A view alone reads nothing."""
        for argument in func._schema.arguments:
            for tensor in _tensors(bound.get(argument.name)):
                key = _storage(tensor)
                if key not in self._sources:
                    if key in self._produced or tensor.dim() == 0:
                        continue
                    self._sources[key] = _bytes(tensor)  # the model keeps it without registering it as a buffer
                size = self._sources[key]
                if name == "embedding" and argument.name == "weight":  # at most one row for each index
                    size = min(size, bound["indices"].numel() * tensor.shape[-1] * tensor.itemsize)
                self.tally.read[key] = max(size, self.tally.read.get(key, 0))
                if argument.alias_info is not None and argument.alias_info.is_write:
                    self.tally.written.add(key)

    def _format(self, name: str, tensors: list[torch.Tensor]) -> str:
        dtype = next((tensor.dtype for tensor in tensors if tensor.dim() >= 1), torch.float32)
        if dtype is torch.float32 and self._device == "cuda" and _uses_tf32(name):
            return "tf32"
        return _FORMATS.get(dtype) or _NARROW.get(dtype) or ("fp8" if dtype.itemsize == 1 else "fp32")

    def cost(self, out: Any) -> ProblemCost:
        tally = self.tally
        results = {_storage(tensor): _bytes(tensor) for tensor in _tensors(out)}
        fresh = sum(size for key, size in results.items() if key not in self._sources)
        changed = sum(self._sources[key] for key in tally.written)
        formats = tally.matrix_by_format
        return ProblemCost(
            bytes_moved=sum(tally.read.values()) + fresh + changed,
            matrix_flops=float(sum(formats.values())),
            vector_flops=tally.vector_flops,
            matrix_dtype=max(formats, key=lambda name: formats[name]) if formats else None,
            reduction_length=tally.reduction_length,
            operators=list(tally.operators),
        )


def _real_cost(model: nn.Module, inputs: list[Any]) -> ProblemCost:
    device = _device_of(model, inputs)
    try:
        copied = copy.deepcopy(model)
    except (RuntimeError, TypeError):  # derived tensors as attributes (old weight_norm), locks, generators
        copied = model
    given = copy.deepcopy(inputs)  # unlike clone, it keeps expanded and shared tensors as they are
    counter = _Counter(_sources([given, _weights(copied)]), device)
    devices = [torch.cuda.current_device()] if device == "cuda" else []
    with torch.random.fork_rng(devices), torch.no_grad(), counter:
        out = copied(*given)
    return counter.cost(out)


def _fake_cost(model: nn.Module, inputs: list[Any]) -> ProblemCost:
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = {id(tensor): mode.from_tensor(tensor) for tensor in _weights(model)}
    given = tree_map_only(torch.Tensor, mode.from_tensor, inputs)
    stand_in = copy.deepcopy(model, dict(fakes))  # the copy takes the stand-ins where the model has its weights
    counter = _Counter(_sources([given, list(fakes.values())]), _device_of(model, inputs))
    with torch.no_grad(), mode, counter:
        out = stand_in(*given)
    return counter.cost(out)


def _weights(model: nn.Module) -> list[torch.Tensor]:
    return [*model.parameters(), *model.buffers()]


def _device_of(model: nn.Module, inputs: list[Any]) -> str:
    return next((tensor.device.type for tensor in [*_tensors(inputs), *_weights(model)]), "cpu")


def _uses_tf32(name: str) -> bool:
    """Whether torch lets this operator multiply fp32 in TF32 now. The getters without `allow_` never raise on a mix."""
    if name in ("convolution", "_convolution"):
        return torch.backends.cudnn.conv.fp32_precision == "tf32"  # pyright: ignore[reportAttributeAccessIssue]
    if name == "_cudnn_rnn":
        return torch.backends.cudnn.rnn.fp32_precision == "tf32"  # pyright: ignore[reportAttributeAccessIssue]
    return torch.backends.cuda.matmul.fp32_precision == "tf32"


def _tensors(tree: Any) -> list[torch.Tensor]:
    return [leaf for leaf in tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _storage(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage()._cdata if tensor.layout is torch.strided else id(tensor)


def _bytes(tensor: torch.Tensor) -> int:
    """An expanded tensor counts as what is stored of it, a slice as what it shows."""
    stored = tensor.untyped_storage().nbytes() if tensor.layout is torch.strided else tensor.numel() * tensor.itemsize
    return min(stored, tensor.numel() * tensor.itemsize)


def _sources(tree: Any) -> dict[int, int]:
    sizes: dict[int, int] = {}
    for tensor in _tensors(tree):
        sizes[_storage(tensor)] = max(_bytes(tensor), sizes.get(_storage(tensor), 0))
    return sizes
