"""Devices by the name their driver reports, and peaks that are dense."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tools.device.datasheet import find_datasheet


@pytest.mark.parametrize(
    ("name", "product", "terabytes", "bf16"),
    [
        ("NVIDIA H200", "H200 SXM", 4.8, 989.4),
        ("NVIDIA H200 NVL", "H200 NVL", 4.8, 835.5),
        ("NVIDIA H100 80GB HBM3", "H100 SXM", 3.35, 989.4),
        ("NVIDIA H100 PCIe", "H100 PCIe", 2.0, 756.5),
        ("NVIDIA H100 NVL", "H100 NVL", 3.9, 835.5),
        ("NVIDIA A100-SXM4-40GB", "A100 40GB", 1.555, 312),
        ("NVIDIA A100-PCIE-40GB", "A100 40GB", 1.555, 312),
        ("NVIDIA A100-SXM4-80GB", "A100 SXM 80GB", 2.039, 312),
        ("NVIDIA A100 80GB PCIe", "A100 PCIe 80GB", 1.935, 312),
        ("NVIDIA L40S", "L40S", 0.864, 362),
        ("NVIDIA B200", "HGX B200", 8.0, 2250),
    ],
)
def test_known_devices(name: str, product: str, terabytes: float, bf16: float) -> None:
    sheet = find_datasheet(name)
    assert sheet is not None
    assert sheet.product == product
    assert sheet.bandwidth == pytest.approx(terabytes * 1e12)
    assert sheet.flops["bf16"] == pytest.approx(bf16 * 1e12)
    assert "https://" in sheet.source


@pytest.mark.parametrize(
    "name",
    ["NVIDIA L40", "NVIDIA GB200", "NVIDIA H100 80GB HBM3 MIG 1g.10gb", "NVIDIA GeForce RTX 4090", "Tesla V100", ""],
)
def test_devices_without_a_datasheet(name: str) -> None:
    assert find_datasheet(name) is None


@pytest.mark.parametrize("name", ["NVIDIA H200", "NVIDIA A100-SXM4-80GB", "NVIDIA L40S", "NVIDIA B200"])
def test_rates_are_dense_and_consistent(name: str) -> None:
    """On every generation bf16 runs at twice TF32's rate and int8 at twice bf16's; sparsity would break neither alone,
    but would put TF32 above eight times the ordinary fp32 rate of the Hopper, or sixteen of the Blackwell."""
    sheet = find_datasheet(name)
    assert sheet is not None
    flops = sheet.flops
    assert flops["bf16"] == flops["fp16"] == pytest.approx(2 * flops["tf32"], rel=0.03)
    assert flops["int8"] == pytest.approx(2 * flops["bf16"], rel=0.03)
    assert flops["tf32"] < 14 * flops["fp32"]


def test_what_the_agent_reads_needs_no_torch() -> None:
    code = "import sys, tools.device.datasheet, tools.device.nvml, tools.device.cpu; assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
