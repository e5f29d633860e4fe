"""The records that tools return: one vocabulary for the judge, the loop, the transcript and the command line.

Every result is typed, is valid on its own (a `correct` one has no error, a timed one has a timing), and carries the
evidence of where it was measured. Times are in microseconds unless a name says otherwise, sizes in bytes.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator


class Verdict(StrEnum):
    """What the judge says of a candidate. `JUDGE_ERROR` is our own fault and is never scored."""

    CORRECT = "correct"
    WRONG_RESULT = "wrong_result"
    NONDETERMINISTIC = "nondeterministic"
    REDUCED_PRECISION = "reduced_precision"
    CHEATING = "cheating"
    COMPILE_ERROR = "compile_error"
    LOAD_ERROR = "load_error"
    RUNTIME_ERROR = "runtime_error"
    TIMEOUT = "timeout"
    SANDBOX_VIOLATION = "sandbox_violation"
    JUDGE_ERROR = "judge_error"


class PrecisionClass(StrEnum):
    """The coarsest arithmetic that explains a measured error."""

    FP64 = "fp64"
    FP32 = "fp32"
    TF32 = "tf32"
    FP16 = "fp16"
    BF16 = "bf16"
    WORSE = "worse"
    EXACT = "exact"


class SpeedClaim(StrEnum):
    FASTER = "faster"
    SLOWER = "slower"
    INDISTINGUISHABLE = "indistinguishable"


class SandboxLevel(StrEnum):
    """How much a candidate's process is held back. `NAMESPACES` is the strongest; `LIMITS` is rlimits alone."""

    NAMESPACES = "namespaces"
    LIMITS = "limits"


class Record(BaseModel):
    """Base of every result: immutable, and closed to fields it does not know."""

    # NaN and infinity are findings here: a plain JSON null would lose them, and would not read back as a number.
    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")


class Evidence(Record):
    """Where and when a result was measured."""

    device: str
    device_name: str
    driver: str | None = None
    torch_version: str
    cuda_version: str | None = None
    compiler: str | None = None
    sandbox: SandboxLevel
    date: str
    clocks_mhz: dict[str, int] | None = None
    threads: int | None = None


class Finding(Record):
    """One thing that was observed, in words a reader can act on.

    `code` is a stable identifier (`tile_tail`, `uninitialised_memory`, …) that names a paragraph in the prompt
    templates; `observed` are the facts that go into it.
    """

    code: str
    severity: Literal["error", "warning", "note"] = "error"
    summary: str
    observed: dict[str, str | int | float | bool | list[int] | list[str] | None] = Field(default_factory=dict)


class Diagnostic(Record):
    """One compiler, linker or Python message, located in the model's own source where that is possible."""

    severity: Literal["error", "warning", "note"]
    message: str
    file: str | None = None
    line: int | None = None
    column: int | None = None
    code: str | None = None
    source_line: str | None = None
    count: int = 1
    hint: str | None = None


class KernelResources(Record):
    """What the compiler knows of one `__global__` function for one target. Shared memory in bytes per block.

    `theoretical_occupancy` is for `block` threads: the kernel's launch bound where it has one, else the size that gives
    the most. `global_access` counts load and store instructions by width in bits, such as `load.128`. The last three
    are read off the machine code, and are empty where no disassembler is at hand (`local_memory_instructions` None).
    """

    name: str
    mangled: str
    arch: str
    registers: int
    spill_stores: int = 0
    spill_loads: int = 0
    stack: int = 0
    static_shared: int = 0
    constant: int = 0
    dynamic_shared_limit: int | None = None
    block: int | None = None
    theoretical_occupancy: float | None = None
    occupancy_limited_by: str | None = None
    tensor_core_instructions: list[str] = Field(default_factory=list)
    global_access: dict[str, int] = Field(default_factory=dict)
    local_memory_instructions: int | None = None


class BuiltModule(Record):
    """One `load_inline` call of a candidate, built. `functions` are the names it exports to Python.

    `call` is `tools.build.calls.fingerprint` of the call, by which a worker finds the library for the call that it
    sees. `library` is empty when the machine could compile but not link (CUDA sources without a CUDA torch).
    """

    name: str
    call: str = ""
    library: str
    functions: list[str]
    route: Literal["fast", "stock"]
    key: str
    seconds: float
    cached: bool
    kernels: list[KernelResources] = Field(default_factory=list)


class BuildResult(Record):
    """The outcome of building every `load_inline` call of one candidate file.

    `verdict` is None when the build succeeded, else `compile_error`, `load_error`, `timeout`, `cheating` (nothing to
    build at all) or `sandbox_violation`. `added` says in one line each what our build supplied.
    """

    ok: bool
    verdict: Verdict | None = None
    source_key: str
    modules: list[BuiltModule] = Field(default_factory=list)
    diagnostics: list[Diagnostic] = Field(default_factory=list)
    added: list[str] = Field(default_factory=list)
    findings: list[Finding] = Field(default_factory=list)
    seconds: float
    cached: bool = False
    log_path: str | None = None

    @model_validator(mode="after")
    def _verdict_fits(self) -> Self:
        if self.ok == (self.verdict is not None):
            raise ValueError("a failed build has a verdict, a successful one has none")
        return self


class ErrorStats(Record):
    """Error of one set of outputs against the fp64 oracle, in units of the output."""

    maximum: float
    rms: float
    bias: float
    scale: float = Field(description="RMS of the oracle, to make the others relative")


class WorstElement(Record):
    output: int
    index: list[int]
    candidate: float | str
    reference: float | str
    oracle: float | str


class TrialResult(Record):
    """One check on one set of inputs. `kind` names the inputs: `own`, `shifted`, `scaled_up`, `sparse`, …"""

    kind: str
    passed: bool
    wrong: int = 0
    elements: int = 0
    error: ErrorStats | None = None
    reference_error: ErrorStats | None = None
    worst: WorstElement | None = None
    conditioned: tuple[float, float] | None = Field(
        default=None, description="RMS and maximum error allowed here, where last bits of the inputs make the output"
    )


class PrecisionReport(Record):
    """How accurate the candidate is, next to the reference as it runs and to the fp32 floor (all against fp64)."""

    measured: PrecisionClass
    reference: PrecisionClass
    candidate_rms: float
    reference_rms: float
    floor_rms: float
    limit_rms: float
    candidate_max: float
    limit_max: float
    conditioned: bool = Field(default=False, description="the limits are those of ill-conditioned inputs")
    oracle: Literal["fp64", "fp64_cpu", "fp32"]


class CorrectnessResult(Record):
    """The verdict on a candidate's outputs, with the evidence behind it."""

    verdict: Verdict
    trials: list[TrialResult] = Field(default_factory=list)
    precision: PrecisionReport | None = None
    findings: list[Finding] = Field(default_factory=list)
    weights: str | None = None
    own_kernel_share: float | None = None
    seconds: float
    evidence: Evidence

    @property
    def passed(self) -> bool:
        return self.verdict is Verdict.CORRECT


class Interval(Record):
    """A bootstrap 95% interval round a median."""

    value: float
    low: float
    high: float


class TimingResult(Record):
    """Candidate and reference timed as interleaved pairs in one run. Times in microseconds.

    `speedup` is reference time over candidate time. `null_spread` is the half-width that the reference shows against
    itself: a claim needs the interval to lie beyond it. `best_baseline` is the fastest form of the reference of the
    precision that is asked for, `speedup_over_best` the candidate's speed-up over that. On CUDA `host_overhead_us` is
    what launching a call takes the host. `in_a_row_us` is what a call takes in a row of them, each on inputs of its
    own, by the judge's clock (on CUDA all are launched ahead), None where nobody believed the worker's.
    """

    candidate_us: Interval
    reference_us: Interval
    speedup: Interval
    claim: SpeedClaim
    null_spread: float
    samples: int
    dropped: int = 0
    method: str
    candidate_hot_us: float | None = None
    reference_hot_us: float | None = None
    host_overhead_us: float | None = None
    in_a_row_us: float | None = None
    reference_in_a_row_us: float | None = None
    baselines_us: dict[str, float] = Field(default_factory=dict)
    best_baseline: str | None = None
    speedup_over_best: float | None = None
    speedup_over_best_low: float | None = None
    speedup_over_best_high: float | None = None
    floor_us: float | None = None
    floor_limited_by: Literal["memory", "compute"] | None = None
    fraction_of_floor: float | None = None
    findings: list[Finding] = Field(default_factory=list)
    seconds: float
    evidence: Evidence


class EvaluationResult(Record):
    """One candidate through build, correctness and timing; stops at the first that fails."""

    verdict: Verdict
    build: BuildResult
    correctness: CorrectnessResult | None = None
    timing: TimingResult | None = None
    seconds: float

    @model_validator(mode="after")
    def _timed_only_if_correct(self) -> Self:
        if self.timing is not None and self.verdict is not Verdict.CORRECT:
            raise ValueError("only a correct candidate is timed")
        if self.verdict is Verdict.CORRECT and self.correctness is None:
            raise ValueError("a correct candidate has a correctness result")
        return self


class Judgement(EvaluationResult):
    """What `agent evaluate --json` prints: the result, and what was judged in which way."""

    problem: str
    file: str
    device: Literal["cuda", "cpu"]
    size: str
    rule: str
    precision: PrecisionClass | None


class DeviceInfo(Record):
    """The device and its limits, as read from the machine, with datasheet peaks beside what was measured here."""

    kind: Literal["cuda", "cpu"]
    name: str
    driver: str | None = None
    arch: str | None = Field(default=None, description="such as sm_90a")
    multiprocessors: int | None = None
    cores: int | None = None
    memory_bytes: int
    l2_bytes: int | None = None
    l3_bytes: int | None = Field(default=None, description="cpu only")
    shared_per_block: int | None = None
    shared_per_multiprocessor: int | None = None
    registers_per_multiprocessor: int | None = None
    warp_size: int | None = None
    simd: str | None = None
    peak_bandwidth: float | None = Field(default=None, description="datasheet, bytes per second")
    measured_bandwidth: float | None = Field(default=None, description="copy, read plus write, bytes per second")
    peak_flops: dict[str, float] = Field(default_factory=dict, description="datasheet, dense, per second")
    measured_flops: dict[str, float] = Field(default_factory=dict)


class Soundness(Record):
    """Whether a verdict on a problem says anything, and what was found. A note of severity `error` makes it not so."""

    judgeable: bool
    notes: list[Finding] = Field(default_factory=list)


class ProblemFacts(Record):
    """What is known of a problem on this device before a token is spent."""

    device: DeviceInfo
    inputs: list[str] = Field(description="such as 'x: float32[16, 64, 1024, 1024]'")
    outputs: list[str]
    parameters: list[str] = Field(default_factory=list, description="name: dtype[shape], in state-dict order")
    reference_precision: PrecisionClass
    bytes_moved: int
    flops: float
    floor_us: float
    floor_limited_by: Literal["memory", "compute"]
    largest_speedup: float | None = None
    baselines_us: dict[str, float] = Field(default_factory=dict, description="eager, eager_tf32, compile, …")
    best_baseline: str | None = Field(default=None, description="the fastest of the precision that is asked for")
    judgeable: bool = True
    judge_notes: list[Finding] = Field(default_factory=list)
    evidence: Evidence
