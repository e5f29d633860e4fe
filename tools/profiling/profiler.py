"""Profiles one built candidate: the right instrument for the device, replies checked, the limit named."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build.instrument import HOST_LINES
from tools.judge.ownership import is_own
from tools.probe.host import Answer, Host
from tools.probe.records import Trouble
from tools.profiling.limits import of_counters, of_samples, of_trace
from tools.profiling.lines import LOOKUP_SECONDS, hot_lines
from tools.profiling.ncu import IMPORT_SECONDS, NCU_SECONDS, count
from tools.profiling.records import KernelCounters, KernelRun, Profile, SymbolShare, Whose
from tools.types import BuildResult, ProblemFacts

SAMPLE_SECONDS = 2.0
LOOK_SECONDS = 60.0
"""For drawing inputs, constructing the candidate and the measured calls."""

BUILD_SECONDS = 60.0
MOST_SECONDS = {
    "cpu": BUILD_SECONDS + 60 + LOOK_SECONDS + LOOKUP_SECONDS,
    "cuda": 60 + LOOK_SECONDS + NCU_SECONDS + 2 * IMPORT_SECONDS,
}
MOST_SYMBOLS = 12
MOST_KERNELS = 8


class _Samples(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rows: list[tuple[str | None, str, Whose, int]] = Field(max_length=64)
    addresses: list[tuple[str, int, int]] = Field(max_length=512)
    samples: int = Field(ge=0)
    calls: int = Field(ge=1)
    wall: float = Field(gt=0)
    cpu: float = Field(ge=0)
    main: float = Field(ge=0)
    asleep: float = Field(ge=0)
    cores: int = Field(ge=1)
    bytes: int = Field(ge=0)


class _Traced(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str = Field(max_length=400)
    calls: float = Field(ge=0)
    us: float = Field(ge=0)
    grid: list[int] = Field(default_factory=list, max_length=3)
    block: list[int] = Field(default_factory=list, max_length=3)
    registers: float | None = None
    shared: float | None = None
    occupancy: float | None = None


class _Trace(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rows: list[_Traced] = Field(max_length=64)
    call_us: float = Field(gt=0)
    bytes: int = Field(ge=0)


def profile_candidate(
    host: Host, source: str, build: BuildResult, folder: Path, facts: ProblemFacts | None = None
) -> Profile:
    """Where the time of one forward goes. `folder` keeps what the instruments leave; `facts` know the bandwidth.

    Takes at most MOST_SECONDS. Raises NurseryError where no child can be started.
    """
    began, folder = time.monotonic(), folder.absolute()
    if host.device == "cpu":
        bandwidth = facts.device.measured_bandwidth if facts else None
        found = _on_cpu(host, source, build, folder, bandwidth)
    else:
        found = _on_cuda(host, host.arguments(source, build), build, folder, facts)
    return found.model_copy(update={"seconds": time.monotonic() - began})


def _on_cpu(host: Host, source: str, build: BuildResult, folder: Path, bandwidth: float | None) -> Profile:
    # The same code with line information; where that fails to build, the functions alone.
    lined = host.builder.build(
        source, init_args=host.init_args, log_dir=folder, instrument=HOST_LINES, timeout=BUILD_SECONDS
    )
    build = lined if lined.ok else build
    args = host.arguments(source, build)
    bare = Profile(method="samples", seconds=0.0, most_seconds=MOST_SECONDS["cpu"])
    more = {"sampler": str(host.sampler), "seconds": SAMPLE_SECONDS}
    answer = host.ask("tools.profiling.sampled:measure", {**args, **more}, LOOK_SECONDS)
    if answer.reply is None:
        return bare.model_copy(update={"trouble": answer.trouble, "evidence": answer.evidence})
    try:
        read = _Samples.model_validate(answer.reply)
    except ValidationError:
        return _forged(bare, answer)
    total = max(read.samples, 1)
    symbols = [SymbolShare(symbol=s, file=f, whose=w, share=n / total) for s, f, w, n in read.rows]
    call_us = read.wall / read.calls * 1e6
    # By the calling thread's time and not by the clock: what else the machine does must not count.
    cores_used = min(float(read.cores), read.cpu / read.main) if read.main > 0 else float(read.cores)
    limit = of_samples(
        symbols,
        cores_used=cores_used,
        cores=read.cores,
        asleep_share=_asleep(read) / read.wall,
        bandwidth_share=_share(read.bytes, call_us, bandwidth),
    )
    update = {
        "call_us": call_us,
        "cores_used": cores_used,
        "cores": read.cores,
        "samples": read.samples,
        "symbols": symbols[:MOST_SYMBOLS],
        "lines": hot_lines(host, build, read.addresses, read.samples, folder),
        "left_out": len(symbols[MOST_SYMBOLS:]),
        "limit": limit,
        "evidence": answer.evidence,
    }
    return bare.model_copy(update=update)


def _asleep(read: _Samples) -> float:
    """Seconds in which the calling thread slept and no other worked for it: what the others did beyond as much as it
    did itself, they may have done meanwhile."""
    others = read.cpu - read.main - (read.cores - 1) * read.main
    return max(0.0, read.asleep - max(0.0, others))


def _on_cuda(host: Host, args: dict[str, Any], build: BuildResult, folder: Path, facts: ProblemFacts | None) -> Profile:
    bare = Profile(method="cupti", seconds=0.0, most_seconds=MOST_SECONDS["cuda"])
    answer = host.ask("tools.profiling.traced:measure", args, LOOK_SECONDS)
    if answer.reply is None:
        return bare.model_copy(update={"trouble": answer.trouble, "evidence": answer.evidence})
    try:
        read = _Trace.model_validate(answer.reply)
    except ValidationError:
        return _forged(bare, answer)
    built = [kernel for module in build.modules for kernel in module.kernels]
    names = frozenset(name for k in built for name in (k.name, k.mangled))
    kernels = _kernel_runs(read.rows, names)
    # Only those that ran are worth starting an instrument for.
    ran = [k.name for k in built if any(is_own(row.name, frozenset((k.name, k.mangled))) for row in read.rows)]
    counters, unavailable, _ = count(host, args, ran, folder)
    counters = _longest(counters)
    bandwidth = facts.device.measured_bandwidth if facts else None
    limit = of_trace(
        kernels,
        built,
        call_us=read.call_us,
        multiprocessors=facts.device.multiprocessors if facts else None,
        bandwidth_share=_share(read.bytes, read.call_us, bandwidth),
    )
    # Counters say more of a kernel, but not that the time is elsewhere.
    if counters and (limit is None or limit.code not in ("library_time", "host_time")):
        limit = of_counters(counters[0])
    update = {
        "method": "ncu" if counters else "cupti",
        "unavailable": unavailable,
        "call_us": read.call_us,
        "kernels": kernels[:MOST_KERNELS],
        "left_out": len(kernels[MOST_KERNELS:]),
        "counters": counters,
        "limit": limit,
        "evidence": answer.evidence,
    }
    return bare.model_copy(update=update)


def _kernel_runs(rows: list[_Traced], names: frozenset[str]) -> list[KernelRun]:
    total = sum(row.us for row in rows) or 1.0
    return [
        KernelRun(
            name=row.name,
            own=is_own(row.name, names),
            calls=row.calls,
            us=row.us,
            share=row.us / total,
            grid=row.grid,
            block=row.block,
            registers=None if row.registers is None else int(row.registers),
            shared=None if row.shared is None else int(row.shared),
            occupancy=None if row.occupancy is None else row.occupancy / 100,
        )
        for row in rows
    ]


def _longest(counters: list[KernelCounters]) -> list[KernelCounters]:
    """One launch of each kernel, the longest, and those first that take the most time."""
    best: dict[str, KernelCounters] = {}
    for launch in sorted(counters, key=lambda k: -k.metrics.get("duration_us", 0.0)):
        best.setdefault(launch.name, launch)
    return list(best.values())[:3]


def _share(count: int, us: float, bandwidth: float | None) -> float | None:
    """Bytes over time, relative to a bandwidth in bytes per second."""
    return count / (us * 1e-6) / bandwidth if bandwidth and us > 0 else None


def _forged(bare: Profile, answer: Answer) -> Profile:
    """A reply of a form that our own code never sends."""
    return bare.model_copy(update={"trouble": Trouble(ended="malformed"), "evidence": answer.evidence})
