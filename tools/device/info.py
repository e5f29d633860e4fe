"""The device that a run works on, with its limits and its datasheet."""

from __future__ import annotations

from typing import Literal

from tools.device import cpu, cuda_driver, nvml
from tools.device.datasheet import find_datasheet
from tools.types import DeviceInfo


class NoDeviceError(Exception):
    """The device that was asked for is not there. The message says why and what to do."""


def device_info(kind: Literal["cuda", "cpu"]) -> DeviceInfo:
    """Reads the current CUDA device (through torch, which this initialises) or the processor (without torch).

    Measured rates are empty: `rates.with_rates` fills them. Raises `NoDeviceError` without a usable CUDA device.
    """
    return _cuda_info() if kind == "cuda" else _cpu_info()


def arch_of(capability: tuple[int, int]) -> str:
    """`(9, 0)` → `sm_90a`: from Hopper on, the instructions that matter need the architecture-specific target."""
    major, minor = capability
    return f"sm_{major}{minor}{'a' if major >= 9 else ''}"


def _cpu_info() -> DeviceInfo:
    return DeviceInfo(
        kind="cpu",
        name=cpu.name(),
        arch=None,
        cores=cpu.usable_cores(),
        memory_bytes=cpu.memory_bytes(),
        l2_bytes=cpu.cache_bytes(2),
        l3_bytes=cpu.cache_bytes(3),
        simd=cpu.simd(),
    )


def _cuda_info() -> DeviceInfo:
    import torch

    if torch.version.cuda is None:
        raise NoDeviceError(
            "This torch was built without CUDA. Install a CUDA build (https://pytorch.org/get-started/locally) "
            "or use --device cpu."
        )
    if not torch.cuda.is_available():
        raise NoDeviceError("torch sees no CUDA device. `agent doctor` says what is missing; or use --device cpu.")
    index = torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(index)
    limits = cuda_driver.attributes(
        index,
        [
            cuda_driver.WARP_SIZE,
            cuda_driver.MULTIPROCESSORS,
            cuda_driver.L2_BYTES,
            cuda_driver.SHARED_PER_MULTIPROCESSOR,
            cuda_driver.REGISTERS_PER_MULTIPROCESSOR,
            cuda_driver.SHARED_PER_BLOCK_OPTIN,
        ],
    )
    sheet = find_datasheet(properties.name)
    return DeviceInfo(
        kind="cuda",
        name=properties.name,
        driver=nvml.driver_version(),
        arch=arch_of((properties.major, properties.minor)),
        multiprocessors=limits[cuda_driver.MULTIPROCESSORS],
        memory_bytes=properties.total_memory,
        l2_bytes=limits[cuda_driver.L2_BYTES],
        shared_per_block=limits[cuda_driver.SHARED_PER_BLOCK_OPTIN],
        shared_per_multiprocessor=limits[cuda_driver.SHARED_PER_MULTIPROCESSOR],
        registers_per_multiprocessor=limits[cuda_driver.REGISTERS_PER_MULTIPROCESSOR],
        warp_size=limits[cuda_driver.WARP_SIZE],
        peak_bandwidth=sheet.bandwidth if sheet else None,
        peak_flops=dict(sheet.flops) if sheet else {},
    )
