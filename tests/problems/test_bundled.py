"""Every bundled problem runs at its small size on the CPU, and is the kind of problem that can be judged."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from problems import bundled_names, load_problem

# Outputs at the small size: dtype and shape of each.
SMALL_OUTPUTS: dict[str, list[tuple[torch.dtype, tuple[int, ...]]]] = {
    "seeds/conv_mish_mish": [(torch.float32, (2, 128, 30, 30))],
    "seeds/pointwise_conv": [(torch.float32, (2, 128, 64, 64))],
    "basics/batch_norm_relu": [(torch.float32, (8, 32, 64, 64))],
    "basics/cross_entropy": [(torch.float32, ())],
    "basics/cumulative_sum": [(torch.float32, (1024, 2048))],
    "basics/depthwise_conv": [(torch.float32, (4, 64, 112, 112))],
    "basics/elementwise_chain": [(torch.float32, (1024, 2048))],
    "basics/embedding_sum": [(torch.float32, (1024, 128))],
    "basics/group_norm_silu": [(torch.float32, (4, 128, 64, 64))],
    "basics/layer_norm": [(torch.float32, (2048, 1024))],
    "basics/matmul_bf16_bias_gelu": [(torch.bfloat16, (512, 2048))],
    "basics/matmul_decode_bf16": [(torch.bfloat16, (8, 8192))],
    "basics/matmul_fp32": [(torch.float32, (512, 512))],
    "basics/max_pool": [(torch.float32, (4, 16, 112, 112))],
    "basics/mse_loss": [(torch.float32, ())],
    "basics/rms_norm_residual": [(torch.float32, (2048, 1024)), (torch.float32, (2048, 1024))],
    "basics/rotary_embedding": [(torch.float32, (2, 16, 1024, 64))],
    "basics/row_softmax": [(torch.float32, (2048, 1024))],
    "basics/short_attention": [(torch.float32, (8, 8, 128, 64))],
    "basics/top1": [(torch.float32, (2048,)), (torch.int64, (2048,))],
}


def problem(name: str, *, small: bool) -> dict[str, Any]:
    """The names that a problem file defines, with the overrides of its small size."""
    spec = load_problem(name)
    names: dict[str, Any] = {"__name__": "problem"}
    exec(compile(spec.source, str(spec.path), "exec"), names)
    names.update(names["SMALL"] if small else {})
    return names


def run(names: dict[str, Any], seed: int) -> list[torch.Tensor]:
    torch.manual_seed(7)
    model = names["Model"](*names["get_init_inputs"]())
    torch.manual_seed(seed)
    inputs = names["get_inputs"]()
    with torch.no_grad():
        out = model(*inputs)
    return list(out) if isinstance(out, tuple) else [out]


def test_the_table_is_complete() -> None:
    assert set(SMALL_OUTPUTS) == set(bundled_names())


@pytest.mark.parametrize("name", SMALL_OUTPUTS)
def test_small_size(name: str) -> None:
    names = problem(name, small=True)
    first, again, other = run(names, 1), run(names, 1), run(names, 2)
    assert [(out.dtype, tuple(out.shape)) for out in first] == SMALL_OUTPUTS[name]
    for out, same, different in zip(first, again, other, strict=True):
        assert torch.isfinite(out.double()).all()
        assert out.double().abs().max() > 0.05  # zeros would not pass for an answer
        assert torch.equal(out, same)
        assert not torch.equal(out, different)


@pytest.mark.parametrize("name", SMALL_OUTPUTS)
def test_full_size_is_worth_timing(name: str) -> None:
    """From 0.1 to 20 GB of inputs and outputs: long enough to time on a data-centre GPU, small enough to fit."""
    names = problem(name, small=False)
    with torch.device("meta"):
        model = names["Model"](*names["get_init_inputs"]())
        tensors = [*names["get_inputs"](), *model.parameters()]
        out = model(*names["get_inputs"]())
    tensors += out if isinstance(out, tuple) else [out]
    assert 0.1e9 < sum(tensor.numel() * tensor.itemsize for tensor in tensors) < 20e9


def test_the_seeds_are_the_documented_ones() -> None:
    pointwise, mish = (problem(f"seeds/{name}", small=False) for name in ("pointwise_conv", "conv_mish_mish"))
    with torch.device("meta"):
        assert pointwise["get_inputs"]()[0].shape == (16, 64, 1024, 1024)
        assert mish["get_inputs"]()[0].shape == (64, 64, 256, 256)
        first = pointwise["Model"](*pointwise["get_init_inputs"]()).conv
        second = mish["Model"](*mish["get_init_inputs"]()).conv
    assert (first.weight.shape, first.bias) == ((128, 64, 1, 1), None)
    assert (second.weight.shape, second.bias.shape) == ((128, 64, 3, 3), (128,))
