"""What a candidate hears when it asks for the GPU while it is captured, where there is none to be touched.

Questions (is there a device, which one, how large) get the answers of the device that the candidate will run on, since
sources may depend on them. Use of the device raises NoDeviceHere: the capture then has seen what it can.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, NoReturn

from tools.build.occupancy import multiprocessor
from tools.device import cuda_driver
from tools.device.nvml import gpus

# Names of torch's device properties by the attribute numbers of cuda.h.
_ATTRIBUTES = {
    "warp_size": cuda_driver.WARP_SIZE,
    "multi_processor_count": cuda_driver.MULTIPROCESSORS,
    "max_threads_per_block": 1,
    "max_threads_per_multi_processor": 39,
    "shared_memory_per_block": 8,
    "shared_memory_per_block_optin": cuda_driver.SHARED_PER_BLOCK_OPTIN,
    "shared_memory_per_multiprocessor": cuda_driver.SHARED_PER_MULTIPROCESSOR,
    "regs_per_multiprocessor": cuda_driver.REGISTERS_PER_MULTIPROCESSOR,
    "L2_cache_size": cuda_driver.L2_BYTES,
    "major": 75,
    "minor": 76,
}


class NoDeviceHere(RuntimeError):  # noqa: N818 - named for what it says
    """The candidate used the GPU where there is none."""


def device_properties(arch: str) -> dict[str, Any]:
    """Properties of the first visible device by torch's names; those of the target's kind where there is no device."""
    try:
        values = cuda_driver.attributes(0, list(_ATTRIBUTES.values()))
    except OSError:
        return _properties_of(arch)
    found = gpus()
    properties: dict[str, Any] = {name: values[number] for name, number in _ATTRIBUTES.items()}
    same = [g for g in found if g.capability == (properties["major"], properties["minor"])]
    return properties | {
        "name": same[0].name if same else "CUDA device",
        "total_memory": same[0].memory_bytes if same else 16 << 30,
    }


def _properties_of(arch: str) -> dict[str, Any]:
    digits = "".join(c for c in arch if c.isdigit())
    limits = multiprocessor(arch)
    return {
        "name": f"CUDA device ({arch})",
        "major": int(digits[:-1]),
        "minor": int(digits[-1]),
        "total_memory": 80 << 30,
        "warp_size": 32,
        "multi_processor_count": 132,
        "max_threads_per_block": 1024,
        "max_threads_per_multi_processor": limits.warps * 32 if limits else 2048,
        "shared_memory_per_block": 48 << 10,
        "shared_memory_per_block_optin": limits.shared_per_block if limits else 48 << 10,
        "shared_memory_per_multiprocessor": limits.shared if limits else 64 << 10,
        "regs_per_multiprocessor": 65536,
        "L2_cache_size": 50 << 20,
    }


def pretend_cuda(properties: dict[str, Any]) -> None:
    """Make `torch.cuda` of this process answer for a device with `properties`, and refuse to start one."""
    import torch

    def refuse(*_: Any, **__: Any) -> NoReturn:
        raise NoDeviceHere("the GPU is not there yet while load_inline calls are collected")

    known = SimpleNamespace(**properties)
    cuda = torch.cuda
    cuda.is_available = lambda: True
    cuda.is_initialized = lambda: False
    cuda.device_count = lambda: 1
    cuda.current_device = lambda: 0
    cuda.get_device_capability = lambda device=None: (known.major, known.minor)
    cuda.get_device_name = lambda device=None: known.name
    cuda.get_device_properties = lambda device=None: known
    cuda.is_bf16_supported = lambda including_emulation=True: known.major >= 8
    cuda.synchronize = lambda device=None: None
    cuda.empty_cache = lambda: None
    cuda.set_device = lambda device: None
    for name in ("_lazy_init", "current_stream", "default_stream"):
        setattr(cuda, name, refuse)
    # These stay classes: a file may subclass them, or look at their methods, without using a device.
    for name in ("Stream", "Event", "CUDAGraph"):
        known_class = getattr(cuda, name)
        setattr(cuda, name, type(name, (known_class,), {"__new__": refuse, "__module__": known_class.__module__}))
