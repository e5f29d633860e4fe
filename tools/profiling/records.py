"""What a profile of one candidate holds. Times in microseconds, sizes in bytes, shares and percentages as named."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.probe.records import Trouble
from tools.types import BuildResult, Evidence, Record

Whose = Literal["own", "library", "other"]
LimitCode = Literal[
    "library_time",
    "overhead",
    "c_library",
    "waits",
    "host_time",
    "idle_cores",
    "hot_function",
    "memory_bandwidth",
    "small_grid",
    "local_memory",
    "uncoalesced",
    "bank_conflicts",
    "tensor_cores",
    "l2_bandwidth",
    "l1_throughput",
    "arithmetic",
    "low_occupancy",
    "waits_for_global_memory",
    "too_many_memory_instructions",
    "waits_for_shared_memory",
    "waits_at_barriers",
    "waits_at_fences",
    "dependent_instructions",
    "instruction_cache",
    "branches",
    "waits_for_tensor_cores",
    "sleeps",
    "not_told",
]


class SymbolShare(Record):
    """A function that program counters were found in. `share` is of all samples; `symbol` is None where unknown."""

    symbol: str | None
    file: str
    whose: Whose
    share: float


class LineShare(Record):
    """A line of the model's own source, such as line 12 of `cpp_sources`, with its share of all samples."""

    file: str
    line: int
    source_line: str | None = None
    share: float


class KernelRun(Record):
    """One kernel as CUPTI saw it run: `calls` and `us` for one forward, `us` of all its calls together.

    `occupancy` is the profiler's estimate from the launch shape, a share. Copies and fills have no shape.
    """

    name: str
    own: bool
    calls: float
    us: float
    share: float
    grid: list[int] = Field(default_factory=list)
    block: list[int] = Field(default_factory=list)
    registers: int | None = None
    shared: int | None = None
    occupancy: float | None = None


class RuleText(Record):
    """A rule of Nsight Compute's that applied, in its own words. `speedup` is its estimate in percent."""

    name: str
    kind: str
    text: str
    speedup: float | None = None


class KernelCounters(Record):
    """One launch of a kernel of the candidate's under Nsight Compute.

    `metrics` are those of `tools.profiling.metrics`, under our names; what was not reported is not there. `stalls` are
    cycles that a warp waits per instruction it issues, by reason, the longest first; `issue_latency` is their sum.
    """

    name: str
    grid: str = ""
    block: str = ""
    metrics: dict[str, float] = Field(default_factory=dict)
    stalls: dict[str, float] = Field(default_factory=dict)
    issue_latency: float | None = None
    occupancy_limited_by: str | None = None
    rules: list[RuleText] = Field(default_factory=list)


class Limit(Record):
    """What limits the candidate most, as far as the figures tell: `code` names the sentence in the template."""

    code: LimitCode
    subject: str | None = Field(default=None, description="the kernel or function that it is about")
    observed: dict[str, float | str] = Field(default_factory=dict)


class Unavailable(Record):
    """Why Nsight Compute gave nothing: `code` names the sentence, `said` are its own words."""

    code: Literal[
        "not_installed",
        "no_namespaces",
        "no_permission",
        "in_use",
        "no_kernel",
        "timeout",
        "failed",
        "no_own_kernel",
        "no_report",
    ]
    said: str = ""


class Profile(Record):
    """Where the time of one candidate's forward goes, warm, on the problem's own inputs.

    `call_us` is one forward by the process's own clock, caches warm. `trouble` is set where the candidate did not come
    to its end, and then nothing else is. `most_seconds` is the limit that all of it had.
    """

    method: Literal["ncu", "cupti", "samples"]
    unavailable: Unavailable | None = None
    call_us: float | None = None
    cores_used: float | None = Field(
        default=None, description="CPU time of all threads over that of the one that calls; cpu only"
    )
    cores: int | None = None
    samples: int | None = None
    symbols: list[SymbolShare] = Field(default_factory=list)
    lines: list[LineShare] = Field(default_factory=list)
    kernels: list[KernelRun] = Field(default_factory=list)
    counters: list[KernelCounters] = Field(default_factory=list)
    left_out: int = Field(default=0, description="symbols or kernels beyond those listed")
    limit: Limit | None = None
    trouble: Trouble | None = None
    build: BuildResult | None = Field(default=None, description="where the candidate could not be built")
    seconds: float
    most_seconds: float
    evidence: Evidence | None = None
