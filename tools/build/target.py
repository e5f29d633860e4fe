"""Which architecture CUDA sources are compiled for."""

from __future__ import annotations

import os

from tools.device.info import arch_of
from tools.device.nvml import Gpu, gpus

DEFAULT_ARCH = "sm_90a"
"""What CUDA sources are compiled for on a machine without a GPU."""


def device_arch() -> str:
    """The architecture of the first GPU that CUDA programs see, such as `sm_90a`; the default without one."""
    gpu = first_visible(gpus(), os.environ.get("CUDA_VISIBLE_DEVICES"))
    return arch_of(gpu.capability) if gpu else DEFAULT_ARCH


def first_visible(found: list[Gpu], visible: str | None) -> Gpu | None:
    """The first of `found` that `CUDA_VISIBLE_DEVICES` (indices, or beginnings of UUIDs) lets through."""
    if visible is None:
        return found[0] if found else None
    first = visible.split(",")[0].strip()
    by_name = (gpu for gpu in found if gpu.uuid.startswith(first) or str(gpu.index) == first)
    return next(by_name, None) if first else None
