"""What limits a candidate most and so what to try first, decided from the figures by rules that name their reason.

The rules go from what makes the others pointless (the time is not in the candidate's kernels) to what is left when
nothing stands out. The figures that decided go into `observed`; the sentence is the template's.
"""

from __future__ import annotations

from collections.abc import Sequence

from tools.profiling.records import KernelCounters, KernelRun, Limit, LimitCode, SymbolShare
from tools.types import KernelResources

NEAR_PEAK = 60.0
"""Percent of a unit's peak above which it counts as what limits (Nsight Compute's own rules say the same)."""

NEAR_BANDWIDTH = 0.6
"""Share of the measured copy bandwidth above which memory counts as what limits."""

ASLEEP = 0.3
C_LIBRARY = ("libc.so", "libc-")

_LATENCY: dict[str, LimitCode] = {
    "long_scoreboard": "waits_for_global_memory",
    "lg_throttle": "too_many_memory_instructions",
    "short_scoreboard": "waits_for_shared_memory",
    "mio_throttle": "waits_for_shared_memory",
    "barrier": "waits_at_barriers",
    "membar": "waits_at_fences",
    "math_pipe_throttle": "arithmetic",
    "wait": "dependent_instructions",
    "no_instruction": "instruction_cache",
    "branch_resolving": "branches",
    "gmma": "waits_for_tensor_cores",
    "sleeping": "sleeps",
}


def of_samples(
    symbols: Sequence[SymbolShare],
    *,
    cores_used: float,
    cores: int,
    bandwidth_share: float | None,
    asleep_share: float = 0.0,
) -> Limit | None:
    """On the CPU. `bandwidth_share` is bytes touched over time, relative to the copy bandwidth; `asleep_share` how much
    of the time the calling thread sleeps and none works for it."""
    if asleep_share > ASLEEP:
        return Limit(code="waits", observed={"asleep": asleep_share})
    if not symbols:
        return None
    shares = {kind: sum(s.share for s in symbols if s.whose == kind) for kind in ("own", "library", "other")}
    first = {kind: next((s for s in symbols if s.whose == kind), None) for kind in shares}

    def limit(code: LimitCode, kind: str, **observed: float | str) -> Limit:
        top = first[kind]
        named = top and (top.symbol or top.file)
        return Limit(code=code, subject=named, observed={**observed, "share": top.share if top else 0.0})

    if shares["library"] > 0.5:
        return limit("library_time", "library", library=shares["library"])
    of_c = sum(s.share for s in symbols if s.whose == "other" and s.file.startswith(C_LIBRARY))
    if shares["other"] > 0.5 and of_c > 0.5 * shares["other"]:
        return limit("c_library", "other", of_c=of_c)
    if shares["other"] > 0.5:
        return limit("overhead", "other", other=shares["other"])
    if bandwidth_share is not None and bandwidth_share >= NEAR_BANDWIDTH:
        return limit("memory_bandwidth", "own", bandwidth=bandwidth_share)
    if cores > 1 and cores_used < 0.7 * cores:
        return limit("idle_cores", "own", cores_used=cores_used, cores=float(cores))
    return limit("hot_function", "own")


def of_trace(
    kernels: Sequence[KernelRun],
    built: Sequence[KernelResources],
    *,
    call_us: float,
    multiprocessors: int | None,
    bandwidth_share: float | None,
) -> Limit | None:
    """On CUDA with no counters: from launch shapes, shares of time, and what the compiler said."""
    if not kernels:
        return None
    own = [k for k in kernels if k.own]
    busy = sum(k.us for k in kernels)
    if not own or sum(k.share for k in own) < 0.5:
        first = next(k for k in kernels if not k.own)
        return Limit(code="library_time", subject=first.name, observed={"library": 1.0 - sum(k.share for k in own)})
    top = own[0]
    if call_us and busy < 0.5 * call_us:
        launches = sum(k.calls for k in kernels)
        return Limit(code="host_time", observed={"busy_us": busy, "call_us": call_us, "launches": launches})
    blocks = 1
    for extent in top.grid:
        blocks *= extent
    if multiprocessors and top.grid and blocks < multiprocessors:
        return Limit(
            code="small_grid", subject=top.name, observed={"blocks": blocks, "multiprocessors": multiprocessors}
        )
    spilled = next((k for k in built if k.spill_loads + k.spill_stores > 0), None)
    if spilled is not None:
        return Limit(
            code="local_memory",
            subject=spilled.name,
            observed={"spilled": float(spilled.spill_loads + spilled.spill_stores)},
        )
    if bandwidth_share is not None and bandwidth_share >= NEAR_BANDWIDTH:
        return Limit(code="memory_bandwidth", subject=top.name, observed={"bandwidth": bandwidth_share})
    if top.occupancy is not None and top.occupancy < 0.25:
        return Limit(code="low_occupancy", subject=top.name, observed={"occupancy": 100 * top.occupancy})
    observed: dict[str, float | str] = {} if bandwidth_share is None else {"bandwidth": bandwidth_share}
    return Limit(code="not_told", subject=top.name, observed=observed)


def of_counters(kernel: KernelCounters) -> Limit:
    """On CUDA with counters, for the launch that takes the most time."""
    m = kernel.metrics

    def limit(code: LimitCode, *names: str, **more: float | str) -> Limit:
        return Limit(code=code, subject=kernel.name, observed={n: m[n] for n in names if n in m} | more)

    def get(name: str) -> float:
        return m.get(name, 0.0)

    if 0 < get("waves") < 1:
        return limit("small_grid", "waves", "achieved_occupancy")
    local = get("local_load_sectors") + get("local_store_sectors")
    if get("sectors") and local > 0.1 * get("sectors"):
        return limit("local_memory", "registers", local_share=local / get("sectors"))
    wasted = min(m.get("load_sector_use", 100.0), m.get("store_sector_use", 100.0))
    if wasted < 50 and max(get("dram"), get("l2"), get("l1")) >= 40:
        return limit(
            "uncoalesced",
            "load_sector_use",
            "store_sector_use",
            "load_sectors_per_request",
            "store_sectors_per_request",
        )
    conflicts = get("bank_conflicts_load") + get("bank_conflicts_store")
    if get("shared_wavefronts") and conflicts > 0.3 * get("shared_wavefronts") and get("l1") >= 40:
        return limit("bank_conflicts", "l1", conflicts=conflicts / get("shared_wavefronts"))
    if get("tensor_pipe") >= NEAR_PEAK:
        return limit("tensor_cores", "tensor_pipe")
    peaks = {name: get(name) for name in ("dram", "l2", "l1", "sm")}
    highest = max(peaks, key=lambda name: peaks[name])
    if peaks[highest] >= NEAR_PEAK:
        codes: dict[str, LimitCode] = {
            "dram": "memory_bandwidth",
            "l2": "l2_bandwidth",
            "l1": "l1_throughput",
            "sm": "arithmetic",
        }
        return limit(codes[highest], highest, "l2_hit", "l1_hit", "issue_active")
    reason = next((r for r in kernel.stalls if r in _LATENCY), None)
    latency: dict[str, float | str] = {}
    if reason is not None:
        latency = {"stall": reason, "cycles": kernel.stalls[reason]}
    # With few warps nothing hides a wait: more of them come before a shorter wait.
    if 0 < get("theoretical_occupancy") < 40 and reason in ("long_scoreboard", "short_scoreboard", "wait", None):
        by = {"limited_by": kernel.occupancy_limited_by} if kernel.occupancy_limited_by else {}
        return limit("low_occupancy", "theoretical_occupancy", "achieved_occupancy", "registers", **by, **latency)
    if reason is not None:
        return limit(_LATENCY[reason], highest, "achieved_occupancy", **latency)
    return limit("not_told", *peaks)
