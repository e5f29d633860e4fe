"""Theoretical occupancy of a kernel from its registers and shared memory.

Limits per multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities", tables "Technical Specifications per
Compute Capability" and "Shared Memory". Allocation rules: those of NVIDIA's occupancy calculator for compute
capability 7.0 and later (registers in units of 256 per warp, warps in groups of four, shared memory in units of 128
bytes, and 1 KiB of it reserved per block from 8.0 on).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

_WARP = 32
_REGISTERS = 65536
_REGISTER_UNIT = 256
_WARP_GROUP = 4
_SHARED_UNIT = 128

Limiter = Literal["threads", "blocks", "registers", "shared memory"]


@dataclass(frozen=True, slots=True)
class Multiprocessor:
    """Limits of one multiprocessor: resident warps and blocks; shared memory in bytes, in all and per block."""

    warps: int
    blocks: int
    shared: int
    shared_per_block: int
    reserved: int


_KIB = 1024
_LIMITS: dict[int, Multiprocessor] = {
    70: Multiprocessor(64, 32, 96 * _KIB, 96 * _KIB, 0),
    72: Multiprocessor(64, 32, 96 * _KIB, 96 * _KIB, 0),
    75: Multiprocessor(32, 16, 64 * _KIB, 64 * _KIB, 0),
    80: Multiprocessor(64, 32, 164 * _KIB, 163 * _KIB, _KIB),
    86: Multiprocessor(48, 16, 100 * _KIB, 99 * _KIB, _KIB),
    87: Multiprocessor(48, 16, 164 * _KIB, 163 * _KIB, _KIB),
    89: Multiprocessor(48, 24, 100 * _KIB, 99 * _KIB, _KIB),
    90: Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, _KIB),
    100: Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, _KIB),
    103: Multiprocessor(64, 32, 228 * _KIB, 227 * _KIB, _KIB),
    110: Multiprocessor(48, 24, 228 * _KIB, 227 * _KIB, _KIB),
    120: Multiprocessor(48, 24, 100 * _KIB, 99 * _KIB, _KIB),
    121: Multiprocessor(48, 24, 100 * _KIB, 99 * _KIB, _KIB),
}


@dataclass(frozen=True, slots=True)
class Occupancy:
    """Resident warps over the most that are possible, for `block` threads, and what keeps it from being more."""

    block: int
    fraction: float
    limited_by: Limiter


def multiprocessor(arch: str) -> Multiprocessor | None:
    """Limits of a target such as `sm_90a`; None for one that is not in the table."""
    match = re.search(r"(\d+)", arch)
    return _LIMITS.get(int(match.group(1))) if match else None


def occupancy(arch: str, *, registers: int, shared: int, block: int) -> Occupancy | None:
    """Occupancy for blocks of `block` threads with `registers` per thread and `shared` bytes per block.

    None for an unknown target, and zero when not even one block fits.
    """
    limits = multiprocessor(arch)
    if limits is None:
        return None
    warps = -(-block // _WARP)
    per_warp = -(-max(registers, 1) * _WARP // _REGISTER_UNIT) * _REGISTER_UNIT
    by_registers = _REGISTERS // per_warp // _WARP_GROUP * _WARP_GROUP // warps
    taken = -(-(shared + limits.reserved) // _SHARED_UNIT) * _SHARED_UNIT
    fits: dict[Limiter, int] = {
        "threads": limits.warps // warps,
        "blocks": limits.blocks,
        "registers": by_registers,
        "shared memory": limits.shared // taken if taken else limits.blocks,
    }
    if shared > limits.shared_per_block:
        fits["shared memory"] = 0
    limiter = min(fits, key=lambda name: fits[name])
    return Occupancy(block, fits[limiter] * warps / limits.warps, limiter)


def best_occupancy(arch: str, *, registers: int, shared: int) -> Occupancy | None:
    """The highest occupancy over the usual block sizes (64 to 1024 threads); of equal ones the size nearest to 256."""
    sizes = sorted(range(64, 1025, 64), key=lambda size: abs(size - 256))
    found = [occupancy(arch, registers=registers, shared=shared, block=size) for size in sizes]
    return max((o for o in found if o is not None), key=lambda o: o.fraction, default=None)
