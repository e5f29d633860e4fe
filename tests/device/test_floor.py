"""What a problem costs, and the least time it needs, against numbers worked out by hand."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from problems import bundled_names, load_problem
from tools.device.floor import ProblemCost, floor, problem_cost
from tools.types import DeviceInfo


class Of(nn.Module):
    """A function as a model."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def bundled(name: str, *, small: bool = False) -> ProblemCost:
    names: dict[str, Any] = {"__name__": "problem"}
    exec(load_problem(name).source, names)
    names.update(names["SMALL"] if small else {})
    with torch.device("cpu" if small else "meta"):
        return problem_cost(names["Model"](*names["get_init_inputs"]()), names["get_inputs"]())


def test_pointwise_convolution_at_full_size_costs_nothing_to_count() -> None:
    cost = bundled("seeds/pointwise_conv")
    pixels = 16 * 1024 * 1024
    assert cost.bytes_moved == 4 * (pixels * 64 + 64 * 128 + pixels * 128)
    assert round(cost.bytes_moved / 1e9, 1) == 12.9
    assert cost.flops == cost.matrix_flops == 2 * pixels * 64 * 128
    assert cost.reduction_length == 64
    assert cost.matrix_dtype == "fp32"
    assert cost.operators == ["convolution"]


def test_the_documented_costs_are_those_counted() -> None:
    text = (Path(__file__).parents[2] / "docs" / "problems.md").read_text()
    told = {name: float(size) for name, size in re.findall(r"^\| `(\w+)` \| ([\d.]+) GB \|", text, re.MULTILINE)}
    assert set(told) == {name.partition("/")[2] for name in bundled_names()}
    for name, size in told.items():
        assert size == pytest.approx(bundled(name).bytes_moved / 1e9, abs=0.006), name


def test_convolution_with_an_epilogue() -> None:
    cost = bundled("seeds/conv_mish_mish")
    outputs = 64 * 128 * 254 * 254
    assert cost.bytes_moved == 4 * (64 * 64 * 256 * 256 + 128 * 64 * 9 + 128 + outputs)
    assert cost.matrix_flops == 2 * outputs * 64 * 9
    assert cost.vector_flops == 2 * outputs
    assert cost.reduction_length == 64 * 9


@pytest.mark.parametrize(
    ("name", "bytes_moved", "matrix", "dtype", "reduction"),
    [
        ("basics/matmul_fp32", 3 * 4 * 512 * 512, 2 * 512**3, "fp32", 512),
        (
            "basics/matmul_bf16_bias_gelu",
            2 * (512 * 1024 + 1024 * 2048 + 2048 + 512 * 2048),
            2 * 512 * 1024 * 2048,
            "bf16",
            1024,
        ),
        ("basics/row_softmax", 2 * 4 * 2048 * 1024, 0, None, 1024),
        ("basics/layer_norm", 4 * (2 * 2048 * 1024 + 2 * 1024), 0, None, 1024),
        ("basics/rms_norm_residual", 4 * (4 * 2048 * 1024 + 1024), 0, None, 1024),
        ("basics/cumulative_sum", 2 * 4 * 1024 * 2048, 0, None, 2048),
        ("basics/cross_entropy", 4 * 512 * 4096 + 8 * 512 + 4, 0, None, 4096),
        ("basics/mse_loss", 2 * 4 * 1024 * 2048 + 4, 0, None, 1024 * 2048),
        ("basics/group_norm_silu", 4 * (2 * 4 * 128 * 4096 + 2 * 128), 0, None, 4 * 4096),
        ("basics/depthwise_conv", 4 * (2 * 4 * 64 * 112 * 112 + 64 * 9 + 64), 2 * 4 * 64 * 112 * 112 * 9, "fp32", 9),
        ("basics/max_pool", 4 * 4 * 16 * (224 * 224 + 112 * 112), 0, None, 1),
        ("basics/top1", 4 * 2048 * 2048 + 12 * 2048, 0, None, 1),
        ("basics/short_attention", 4 * 4 * 64 * 128 * 64, 4 * 64 * 128 * 128 * 64, "fp32", 128),
        ("basics/embedding_sum", 8 * 1024 * 32 + 4 * 8192 * 128 + 4 * 1024 * 128, 0, None, 32),
    ],
)
def test_bundled_problems(name: str, bytes_moved: int, matrix: int, dtype: str | None, reduction: int) -> None:
    cost = bundled(name, small=True)
    assert (cost.bytes_moved, cost.matrix_flops) == (bytes_moved, matrix)
    assert (cost.matrix_dtype, cost.reduction_length) == (dtype, reduction)


def test_training_batch_norm_leaves_the_models_statistics_alone() -> None:
    model, x = nn.BatchNorm2d(8), torch.rand(4, 8, 5, 5)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    cost = problem_cost(model, [x])
    weights, statistics, count = 2 * 4 * 8, 2 * 4 * 8, 8
    # torch does not declare that the operator changes the statistics, so only the batch count is seen to be written.
    assert cost.bytes_moved == 2 * 4 * x.numel() + weights + statistics + 2 * count
    assert cost.reduction_length == 4 * 5 * 5
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())
    assert problem_cost(model.eval(), [x]).reduction_length == 1


def test_inputs_changed_in_place_are_written_once_and_the_callers_are_kept() -> None:
    x = torch.rand(100)
    before = x.clone()
    cost = problem_cost(Of(lambda t: t.mul_(2).add_(1)), [x])
    assert cost.bytes_moved == 2 * 4 * 100
    assert torch.equal(x, before)


def test_only_what_is_used_counts_and_only_once() -> None:
    x, unused = torch.rand(10, 10), torch.rand(1000)
    assert problem_cost(Of(lambda a, b: a + a), [x, unused]).bytes_moved == 2 * 4 * 100
    assert problem_cost(Of(lambda a, b: a + b), [x, x]).bytes_moved == 2 * 4 * 100
    assert problem_cost(Of(lambda a: a.t()), [x]).bytes_moved == 0
    assert problem_cost(Of(lambda a, b: a + b), [x, torch.rand(1, 10).expand(10, 10)]).bytes_moved == 4 * (210)


def test_a_tensor_that_the_model_keeps_unregistered_counts() -> None:
    kept = torch.rand(10)
    assert problem_cost(Of(lambda a: a * kept), [torch.rand(10)]).bytes_moved == 3 * 4 * 10
    assert problem_cost(Of(lambda a: a * torch.full((10,), 2.0)), [torch.rand(10)]).bytes_moved == 2 * 4 * 10


def test_an_embedding_reads_at_most_one_row_for_each_index() -> None:
    cost = problem_cost(nn.Embedding(100_000, 16), [torch.arange(10)])
    assert cost.bytes_moved == 10 * 8 + 2 * 10 * 16 * 4


def test_outputs_of_any_structure() -> None:
    cost = problem_cost(Of(lambda a: {"sum": a.sum(), "rest": [a + 1, 3, None]}), [torch.rand(8, 8)])
    assert cost.bytes_moved == 4 * (64 + 1 + 64)
    assert cost.reduction_length == 64


def test_recurrent_layers_cost_the_same_by_either_route() -> None:
    model = nn.LSTM(32, 64, 2, batch_first=True)
    expected = 2 * 40 * 4 * 64 * ((32 + 64) + (64 + 64))
    assert problem_cost(model, [torch.rand(4, 10, 32)]).matrix_flops == expected
    with torch.device("meta"):
        stand_in = nn.LSTM(32, 64, 2, batch_first=True)
        assert problem_cost(stand_in, [torch.rand(4, 10, 32)]).matrix_flops == expected


@pytest.mark.parametrize(
    ("model", "inputs", "reduction"),
    [
        (nn.ConvTranspose2d(16, 8, 3, stride=2), [torch.rand(1, 16, 8, 8)], 16 * 9),
        (nn.AvgPool2d(3), [torch.rand(1, 3, 9, 9)], 9),
        (nn.AvgPool3d((1, 2, 3)), [torch.rand(1, 3, 9, 9, 9)], 6),
        (nn.AdaptiveAvgPool2d(2), [torch.rand(1, 3, 9, 9)], 25),
        (nn.EmbeddingBag(100, 4), [torch.arange(60), torch.arange(0, 60, 6)], 6),
        (nn.InstanceNorm2d(3), [torch.rand(2, 3, 8, 8)], 64),
        (nn.Bilinear(5, 6, 7), [torch.rand(2, 5), torch.rand(2, 6)], 30),
        (Of(lambda a: a.var(dim=0)), [torch.rand(50, 3)], 50),
        (Of(lambda a: torch.logsumexp(a, 1)), [torch.rand(3, 40)], 40),
        (Of(lambda a: torch.norm(a)), [torch.rand(3, 40)], 120),
        (Of(lambda a: a.amax()), [torch.rand(3, 40)], 1),
        (Of(lambda a, b: torch.einsum("ij,kj->ik", a, b)), [torch.rand(3, 40), torch.rand(2, 40)], 40),
        (Of(lambda a: torch.cumsum(a, 0)), [torch.tensor(3.0)], 1),
        (nn.HuberLoss(), [torch.rand(30), torch.rand(30)], 30),
        (nn.HuberLoss(reduction="none"), [torch.rand(30), torch.rand(30)], 1),
    ],
)
def test_longest_sum(model: nn.Module, inputs: list[torch.Tensor], reduction: int) -> None:
    assert problem_cost(model, inputs).reduction_length == reduction


def test_the_random_generator_is_left_as_it_was() -> None:
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    problem_cost(nn.Dropout(), [torch.ones(50)])
    assert torch.equal(torch.rand(4), expected)


def test_control_flow_on_values() -> None:
    model = Of(lambda a: a + 1 if a.sum() > 0 else torch.cumsum(a, 0))
    assert problem_cost(model, [torch.ones(5)]).operators == ["sum", "gt", "_local_scalar_dense", "add"]
    assert "cumsum" in problem_cost(model, [-torch.ones(5)]).operators


def test_a_model_that_can_not_be_copied() -> None:
    model = nn.Linear(4, 4)
    model.derived = model.weight * 2  # deepcopy refuses a tensor with a history
    assert problem_cost(model, [torch.rand(2, 4)]).matrix_flops == 2 * 2 * 4 * 4


def test_what_the_forward_raises_is_passed_on() -> None:
    with pytest.raises(RuntimeError, match="shape"):
        problem_cost(Of(lambda a, b: a @ b), [torch.rand(2, 3), torch.rand(2, 3)])


def test_short_memory_falls_back_to_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    def starve(tensors: Any) -> Any:
        raise torch.OutOfMemoryError("no room for a copy")

    monkeypatch.setattr("tools.device.floor._real_cost", lambda model, inputs: starve(inputs))
    assert problem_cost(nn.Linear(4, 4), [torch.rand(2, 4)]).matrix_flops == 2 * 2 * 4 * 4


# The floor

DEVICE = DeviceInfo(
    kind="cuda",
    name="made up",
    memory_bytes=1 << 37,
    l2_bytes=50_000_000,
    peak_bandwidth=5e12,
    measured_bandwidth=4e12,
    peak_flops={"fp32": 60e12, "tf32": 500e12, "bf16": 1000e12, "fp8": 2000e12},
    measured_flops={"fp32": 50e12, "tf32": 400e12, "bf16": 700e12},
)


def cost(**values: Any) -> ProblemCost:
    base = {"bytes_moved": 0, "matrix_flops": 0.0, "vector_flops": 0.0, "matrix_dtype": None, "reduction_length": 1}
    return ProblemCost(operators=[], **(base | values))


def test_memory_bound() -> None:
    found = floor(cost(bytes_moved=8_000_000_000, matrix_flops=1e9, matrix_dtype="tf32"), DEVICE)
    assert found.limited_by == "memory"
    assert found.us == found.memory_us == pytest.approx(2000)
    assert found.datasheet_us == pytest.approx(1600)
    assert not found.cached


@pytest.mark.parametrize(
    ("dtype", "us", "datasheet_us"),
    [
        ("fp32", 20000, 1e12 / 60e6),
        ("tf32", 2500, 2000),
        ("bf16", 1e12 / 700e6, 1000),
        ("fp16", 2500, 2000),  # not measured, nor in this datasheet: what TF32 reaches can be reached with fp16 too
        ("fp8", 1e12 / 700e6, 500),
        ("int8", 0, 0),  # nothing is known of it, and nothing is made up
    ],
)
def test_compute_bound(dtype: str, us: float, datasheet_us: float) -> None:
    found = floor(cost(bytes_moved=400, matrix_flops=1e12, matrix_dtype=dtype), DEVICE)
    assert found.compute_us == pytest.approx(us)
    assert found.limited_by == ("compute" if us else "memory")
    assert found.datasheet_us == pytest.approx(datasheet_us, abs=1e-3)


def test_vector_work_runs_beside_matrix_work() -> None:
    work = cost(matrix_flops=400e12, matrix_dtype="tf32", vector_flops=100e12)
    assert floor(work, DEVICE).compute_us == pytest.approx(2e6)


def test_what_fits_into_the_cache_has_no_firm_floor() -> None:
    assert floor(cost(bytes_moved=40_000_000), DEVICE).cached
    assert floor(cost(bytes_moved=40_000_000), DEVICE.model_copy(update={"l3_bytes": 30_000_000})).cached is False


def test_without_measured_rates_the_datasheet_serves_and_without_either_it_is_an_error() -> None:
    unmeasured = DEVICE.model_copy(update={"measured_bandwidth": None, "measured_flops": {}})
    assert floor(cost(bytes_moved=5_000_000), unmeasured).us == pytest.approx(1)
    with pytest.raises(ValueError, match="measure it first"):
        floor(cost(bytes_moved=1), unmeasured.model_copy(update={"peak_bandwidth": None}))


@pytest.mark.gpu
def test_a_convolution_counts_as_tf32_where_cudnn_may_use_it() -> None:
    model, x = nn.Conv2d(8, 8, 3).cuda(), torch.rand(1, 8, 16, 16, device="cuda")
    before = torch.backends.cudnn.allow_tf32
    try:
        for allowed, dtype in ((True, "tf32"), (False, "fp32")):
            torch.backends.cudnn.allow_tf32 = allowed
            assert problem_cost(model, [x]).matrix_dtype == dtype
    finally:
        torch.backends.cudnn.allow_tf32 = before
    assert problem_cost(nn.Linear(8, 8).cuda(), [torch.rand(4, 8, device="cuda")]).matrix_dtype == "fp32"
