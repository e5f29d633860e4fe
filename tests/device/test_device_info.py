"""What is read off this machine, held against other sources of the same facts."""

from __future__ import annotations

import datetime
import os
import shutil
import subprocess

import pytest
import torch

from tools.device import cpu, nvml
from tools.device.cuda_driver import attributes
from tools.device.environment import evidence
from tools.device.info import NoDeviceError, arch_of, device_info
from tools.types import SandboxLevel


def test_cpu() -> None:
    info = device_info("cpu")
    assert info.kind == "cpu"
    assert info.name
    assert info.cores is not None
    assert 1 <= info.cores <= (os.cpu_count() or 1)
    assert info.multiprocessors is None
    assert info.measured_bandwidth is None


def test_cpu_memory_is_at_most_the_machines() -> None:
    with open("/proc/meminfo") as file:  # noqa: PTH123
        total = int(file.readline().split()[1]) * 1024
    assert 0 < device_info("cpu").memory_bytes <= total


def test_cores_follow_the_affinity() -> None:
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert cpu.usable_cores() == 1
    finally:
        os.sched_setaffinity(0, before)


@pytest.mark.skipif(shutil.which("lscpu") is None, reason="lscpu is not installed")
def test_caches_agree_with_lscpu() -> None:
    command = ["lscpu", "--bytes", "--caches=NAME,ONE-SIZE"]
    rows = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[1:]
    told = dict(row.split() for row in rows)
    for level, name in ((1, "L1d"), (2, "L2"), (3, "L3")):
        assert cpu.cache_bytes(level) == (int(told[name]) if name in told else None)
    assert cpu.cache_bytes(9) is None


def test_simd_agrees_with_torch() -> None:
    capability = torch.backends.cpu.get_cpu_capability()
    expected = {"AVX512": "AVX-512", "AVX2": "AVX2"}.get(capability)
    if expected is None:
        pytest.skip(f"torch calls this processor {capability}")
    assert (cpu.simd() or "").startswith(expected)


@pytest.mark.parametrize(
    ("capability", "arch"), [((8, 0), "sm_80"), ((8, 9), "sm_89"), ((9, 0), "sm_90a"), ((10, 0), "sm_100a")]
)
def test_architecture(capability: tuple[int, int], arch: str) -> None:
    assert arch_of(capability) == arch


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
def test_no_cuda_device() -> None:
    with pytest.raises(NoDeviceError, match="--device cpu"):
        device_info("cuda")
    assert nvml.throttle_state() == ""


def test_evidence_of_the_cpu() -> None:
    found = evidence("cpu", sandbox=SandboxLevel.LIMITS, compiler="g++ 13")
    assert (found.device, found.sandbox, found.compiler) == ("cpu", SandboxLevel.LIMITS, "g++ 13")
    assert found.torch_version == torch.__version__
    assert found.threads == torch.get_num_threads()
    age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(found.date)
    assert datetime.timedelta(0) <= age < datetime.timedelta(seconds=30)


def test_unknown_gpu_has_no_clocks() -> None:
    assert nvml.clocks_mhz("00000000-0000-0000-0000-000000000000") == {}


@pytest.mark.gpu
def test_cuda() -> None:
    info = device_info("cuda")
    properties = torch.cuda.get_device_properties(0)
    assert info.name == properties.name
    assert info.multiprocessors == properties.multi_processor_count
    assert info.l2_bytes == properties.L2_cache_size
    assert info.arch == arch_of(torch.cuda.get_device_capability(0))
    assert info.warp_size == 32
    assert info.registers_per_multiprocessor == 65536
    assert info.shared_per_block is not None and info.shared_per_multiprocessor is not None
    assert 48 << 10 <= info.shared_per_block < info.shared_per_multiprocessor
    smi = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    assert info.driver == subprocess.run(smi, capture_output=True, text=True, check=True).stdout.split()[0]


@pytest.mark.gpu
def test_nvml_lists_the_device_that_torch_uses() -> None:
    uuid = str(torch.cuda.get_device_properties(0).uuid)
    gpu = next(gpu for gpu in nvml.gpus() if gpu.uuid.endswith(uuid))
    assert gpu.name == torch.cuda.get_device_name(0)
    assert gpu.capability == torch.cuda.get_device_capability(0)
    assert gpu.memory_bytes >= torch.cuda.get_device_properties(0).total_memory
    version = nvml.driver_cuda_version()
    assert version is not None and version >= tuple(int(part) for part in (torch.version.cuda or "0.0").split("."))


@pytest.mark.gpu
def test_evidence_and_clocks_of_a_gpu() -> None:
    torch.zeros(1, device="cuda")
    found = evidence("cuda", sandbox=SandboxLevel.NAMESPACES)
    assert found.device == "cuda:0"
    assert found.cuda_version == torch.version.cuda
    assert found.clocks_mhz is not None
    assert 0 < found.clocks_mhz["sm"] <= found.clocks_mhz["sm_max"]
    state = nvml.throttle_state()
    assert f"memory {found.clocks_mhz['memory']} MHz" in state


@pytest.mark.gpu
def test_there_is_no_device_99() -> None:
    with pytest.raises(OSError, match="no device 99"):
        attributes(99, [])
