"""What the NVIDIA driver says of its GPUs, read through NVML by ctypes. Nothing here changes a setting or needs torch.

No function raises when there is no driver: they answer None or an empty dict.
"""

from __future__ import annotations

import ctypes
import sys
from dataclasses import dataclass
from functools import cache

_CLOCKS = {"graphics": 0, "sm": 1, "memory": 2}
# nvmlClocksThrottleReason bits that slow a GPU down for more than its ordinary power cap (nvml.h).
_SLOWDOWNS = {0x08: "hardware", 0x20: "thermal_software", 0x40: "thermal_hardware", 0x80: "power_brake"}
# nvmlReturn_t values that mean the same for every caller: the library answered.
_SUCCESS = 0


@dataclass(frozen=True)
class Gpu:
    """One GPU as the driver lists it. `memory_bytes` is all of its memory."""

    index: int
    name: str
    uuid: str
    memory_bytes: int
    capability: tuple[int, int]


class _Memory(ctypes.Structure):
    _fields_ = (("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong))


@cache
def _library() -> ctypes.CDLL | None:
    """NVML, initialised once per process, or None where it is absent or no driver is loaded."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return library if library.nvmlInit_v2() == _SUCCESS else None


def driver_version() -> str | None:
    """Such as `580.159.04`."""
    library = _library()
    text = ctypes.create_string_buffer(96)
    if library is None or library.nvmlSystemGetDriverVersion(text, len(text)) != _SUCCESS:
        return None
    return text.value.decode()


def driver_cuda_version() -> tuple[int, int] | None:
    """The newest CUDA version that the driver runs, such as `(13, 0)`."""
    library = _library()
    version = ctypes.c_int()
    if library is None or library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(version)) != _SUCCESS:
        return None
    return version.value // 1000, version.value % 1000 // 10


def gpus() -> list[Gpu]:
    """Every GPU that the driver lists. `CUDA_VISIBLE_DEVICES` does not hide any here."""
    library = _library()
    count = ctypes.c_uint()
    if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != _SUCCESS:
        return []
    found: list[Gpu] = []
    for index in range(count.value):
        handle = ctypes.c_void_p()
        if library.nvmlDeviceGetHandleByIndex_v2(ctypes.c_uint(index), ctypes.byref(handle)) != _SUCCESS:
            continue  # a GPU that fell off the bus: the others still work
        name, uuid = ctypes.create_string_buffer(96), ctypes.create_string_buffer(96)
        memory, major, minor = _Memory(), ctypes.c_int(), ctypes.c_int()
        library.nvmlDeviceGetName(handle, name, ctypes.c_uint(len(name)))
        library.nvmlDeviceGetUUID(handle, uuid, ctypes.c_uint(len(uuid)))
        library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        library.nvmlDeviceGetCudaComputeCapability(handle, ctypes.byref(major), ctypes.byref(minor))
        capability = (major.value, minor.value)
        found.append(Gpu(index, name.value.decode(), uuid.value.decode(), memory.total, capability))
    return found


def clocks_mhz(uuid: str) -> dict[str, int]:
    """Clocks at this moment and their upper limits: `sm`, `memory`, `graphics`, and each with `_max`. Empty if unknown.

    `uuid` as in `Gpu.uuid`, with or without its `GPU-` in front (torch leaves it out).
    """
    library, handle = _library(), _handle(uuid)
    clocks: dict[str, int] = {}
    if library is None or handle is None:
        return clocks
    for name, kind in _CLOCKS.items():
        for suffix, function in (("", library.nvmlDeviceGetClockInfo), ("_max", library.nvmlDeviceGetMaxClockInfo)):
            value = ctypes.c_uint()
            if function(handle, ctypes.c_int(kind), ctypes.byref(value)) == _SUCCESS:
                clocks[name + suffix] = value.value
    return clocks


def throttle_state() -> str:
    """What holds back this process's CUDA device now: `thermal`, `power_brake`, …, and its memory clock.

    Compare two of them to see whether a sample straddled a change. The ordinary power cap is left out: under load it
    comes and goes all the time, and pairing samples takes care of it. Empty for a process that uses no CUDA device.
    """
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return ""
    library = _library()
    handle = _handle(str(torch.cuda.get_device_properties(torch.cuda.current_device()).uuid))
    reasons, memory = ctypes.c_ulonglong(), ctypes.c_uint()
    if library is None or handle is None:
        return ""
    library.nvmlDeviceGetCurrentClocksThrottleReasons(handle, ctypes.byref(reasons))
    library.nvmlDeviceGetClockInfo(handle, ctypes.c_int(_CLOCKS["memory"]), ctypes.byref(memory))
    held = [name for bit, name in _SLOWDOWNS.items() if reasons.value & bit]
    return " ".join([*held, f"memory {memory.value} MHz"])


@cache
def _handle(uuid: str) -> ctypes.c_void_p | None:
    library = _library()
    handle = ctypes.c_void_p()
    full = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
    if library is None or library.nvmlDeviceGetHandleByUUID(full.encode(), ctypes.byref(handle)) != _SUCCESS:
        return None
    return handle
