"""Device attributes through the CUDA driver API by ctypes: torch shows some, and not the same ones in each version."""

from __future__ import annotations

import ctypes

# CUdevice_attribute values, cuda.h.
WARP_SIZE = 10
MULTIPROCESSORS = 16
L2_BYTES = 38
SHARED_PER_MULTIPROCESSOR = 81
REGISTERS_PER_MULTIPROCESSOR = 82
SHARED_PER_BLOCK_OPTIN = 97

_SUCCESS = 0


def attributes(index: int, wanted: list[int]) -> dict[int, int]:
    """Values of device attributes of the visible device `index`. Initialises the driver, makes no context.

    Raises `OSError` when there is no driver or no such device.
    """
    library = ctypes.CDLL("libcuda.so.1")
    device = ctypes.c_int()
    if library.cuInit(0) != _SUCCESS or library.cuDeviceGet(ctypes.byref(device), index) != _SUCCESS:
        raise OSError(f"the CUDA driver has no device {index}")
    found: dict[int, int] = {}
    for attribute in wanted:
        value = ctypes.c_int()
        status = library.cuDeviceGetAttribute(ctypes.byref(value), ctypes.c_int(attribute), device)
        if status != _SUCCESS:
            raise OSError(f"cuDeviceGetAttribute({attribute}) failed with error {status}")
        found[attribute] = value.value
    return found
