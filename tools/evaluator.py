"""The agent's handle on everything that evaluates: nursery, builder and judge, as one object with typed answers.

Free of torch: the processes behind it are started on first use and die with this one.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from problems import ProblemError, ProblemSpec
from tools.build import Builder
from tools.build.helpers import helper_libraries
from tools.build.slots import cores
from tools.channel import ChannelError, receive_json, send_json
from tools.experiment import Experiment, run_script
from tools.nursery import Child, Nursery, NurseryError
from tools.sandbox import Limits, probe_level
from tools.tuning import SweepRow
from tools.types import (
    BuildResult,
    CorrectnessResult,
    EvaluationResult,
    PrecisionClass,
    ProblemFacts,
    SandboxLevel,
    Soundness,
    TimingResult,
)

SETUP_SECONDS = 300.0
REQUEST_SECONDS = 900.0
MESSAGE_BYTES = 64 << 20


class EvaluatorError(Exception):
    """Evaluating is impossible here, through no fault of the candidate. The message says what to do."""


class EvaluatorSettings(BaseModel):
    """How candidates are judged. `rule` `kernelbench` is the plain allclose at 1e-4 against the reference."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["cuda", "cpu"]
    size: str = "full"
    sandbox: Literal["auto", "strict"] = "auto"
    rule: Literal["oracle", "kernelbench"] = "oracle"
    precision: PrecisionClass | None = None
    require_own_kernels: float | None = Field(default=None, ge=0, le=1)
    repair_inputs: bool = Field(default=False, description="others where the problem's own mean nothing")
    cache_dir: Path = Field(default_factory=lambda: default_cache_dir())
    compile_baselines: bool = False
    autotune_baseline: bool = Field(default=False, description="torch.compile with max-autotune too; takes minutes")
    hidden: tuple[Path, ...] = Field(default=(), description="folders that no candidate may see, such as other runs")


def default_cache_dir() -> Path:
    """Where builds and measured rates are kept across runs: KERNEL_AGENT_CACHE, else the user's cache folder."""
    named = os.environ.get("KERNEL_AGENT_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "kernel-agent"


class Evaluator:
    """Builds, checks and times candidates of one problem. Use as a context manager.

    Raises ProblemError when the problem can't be used on this device, EvaluatorError when the machine can't.
    """

    def __init__(self, spec: ProblemSpec, settings: EvaluatorSettings) -> None:
        self.spec = spec
        self.settings = settings
        self._nursery: Nursery | None = None
        self._judge: Child | None = None
        self._builder: Builder | None = None
        self._init_args: list[Any] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process that was started."""
        if self._judge is not None:
            self._judge.kill()
            self._judge.close()
            self._judge = None
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
        self._builder = None

    def facts(self) -> ProblemFacts:
        """What is known of the problem on this device before anything is tried."""
        return ProblemFacts.model_validate(self._request("facts"))

    def soundness(self) -> Soundness:
        """Whether a verdict on the problem says anything, without timing it. Part of `facts` too."""
        return Soundness.model_validate(self._request("soundness"))

    def build(self, source: str, log_dir: Path, *, stock: bool = False) -> BuildResult:
        """Build every `load_inline` call of a candidate. `stock` takes torch's own route and no other."""
        self._start()
        assert self._builder is not None
        return self._builder.build(source, init_args=self._init_args, log_dir=log_dir, stock=stock)

    def standalone(self, source: str) -> str:
        """The candidate as a file that a plain PyTorch builds: what our build supplied is written into its calls."""
        self._start()
        assert self._builder is not None
        return self._builder.standalone(source, init_args=self._init_args)

    def check(self, source: str, build: BuildResult) -> CorrectnessResult:
        """The verdict on a built candidate."""
        return CorrectnessResult.model_validate(self._request("check", **_program(source, build)))

    def time(self, source: str, build: BuildResult, *, thorough: bool = False) -> TimingResult | CorrectnessResult:
        """The timing of a correct candidate; a CorrectnessResult with its verdict when a timed call unmasks it.

        With `thorough` it may take four times as long to narrow the interval.
        """
        reply = self._request("time", **_program(source, build), thorough=thorough)
        if "timing" in reply:
            return TimingResult.model_validate(reply["timing"])
        return CorrectnessResult.model_validate(reply["correctness"])

    def build_all(self, sources: Sequence[tuple[str, Path]]) -> list[BuildResult]:
        """Build many sources, each with its log folder, as many at once as the machine has room for; in their order."""
        self._start()
        if not sources:
            return []
        # Compilers wait for a slot of their own; what runs before and after them needs little.
        with ThreadPoolExecutor(min(len(sources), 2 * cores())) as pool:
            return list(pool.map(lambda entry: self.build(*entry), sources))

    def sweep(self, variants: Sequence[tuple[str, BuildResult]]) -> list[SweepRow]:
        """Built variants checked lightly and timed against each other, in their order. None is correct by that."""
        reply = self._request("sweep", variants=[_program(source, build) for source, build in variants])
        return [SweepRow.model_validate(row) for row in reply]

    def experiment(self, source: str, log_dir: Path, *, seconds: float) -> Experiment:
        """Run a script on the device, in a candidate's sandbox, and return what it printed."""
        self._start()
        assert self._nursery is not None and self._builder is not None
        build = None
        if "load_inline" in source or "cpp_extension" in source:
            build = self._builder.build(source, init_args=None, log_dir=log_dir, script=True)
        settings = self.settings
        return run_script(
            self._nursery,
            source,
            build,
            device=settings.device,
            seconds=seconds,
            readable=[settings.cache_dir],
            hidden=settings.hidden,
        )

    def evaluate(
        self, source: str, log_dir: Path, *, stage: Callable[[str], None] | None = None, stock: bool = False
    ) -> EvaluationResult:
        """Build, check and time; stops at the first that fails. `stage` hears `build`, `check`, `time`."""
        began = time.monotonic()
        tell = stage or (lambda _: None)
        tell("build")
        build = self.build(source, log_dir, stock=stock)
        if build.verdict is not None:
            return EvaluationResult(verdict=build.verdict, build=build, seconds=time.monotonic() - began)
        tell("check")
        correctness = self.check(source, build)
        timing = None
        if correctness.passed:
            tell("time")
            timed = self.time(source, build, thorough=stock)
            if isinstance(timed, TimingResult):
                timing = timed
            else:
                correctness = timed.model_copy(
                    update={"trials": correctness.trials, "precision": correctness.precision}
                )
        return EvaluationResult(
            verdict=correctness.verdict,
            build=build,
            correctness=correctness,
            timing=timing,
            seconds=time.monotonic() - began,
        )

    def confirm(self, source: str, log_dir: Path, *, stage: Callable[[str], None] | None = None) -> EvaluationResult:
        """Evaluate once more with fresh processes, fresh secret seeds and a stock `load_inline` build."""
        if self._judge is not None:
            self._judge.kill()
            self._judge.close()
            self._judge = None
        return self.evaluate(source, log_dir, stage=stage, stock=True)

    def _start(self) -> None:
        try:
            if self._nursery is None:
                self._start_nursery()
            if self._judge is None:
                self._start_judge()
        except NurseryError as error:
            raise EvaluatorError(f"{error}. Run `agent doctor` to see what this machine lacks.") from error

    def _start_nursery(self) -> None:
        level = probe_level()
        if self.settings.sandbox == "strict" and level is not SandboxLevel.NAMESPACES:
            raise EvaluatorError(
                f"--sandbox strict needs user namespaces, and this machine only gives `{level}`: allow unprivileged "
                "user namespaces (sysctl kernel.unprivileged_userns_clone=1), run as root, or leave --sandbox at auto"
            )
        cache = self.settings.cache_dir
        try:
            cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise EvaluatorError(f"the cache folder {cache} can't be made ({error}): set KERNEL_AGENT_CACHE") from error
        self._libraries = helper_libraries(cache, self.settings.device)
        self._nursery = Nursery.start(level, preload=self._libraries.guard)
        self._builder = Builder(
            nursery=self._nursery,
            device=self.settings.device,
            level=level,
            cache_dir=cache,
            hidden=self.settings.hidden,
        )

    def _start_judge(self) -> None:
        assert self._nursery is not None and self._builder is not None
        settings = self.settings
        self._judge = self._nursery.spawn(
            "tools.judge.main:main",
            {
                "source": self.spec.source,
                "size": settings.size,
                "device": settings.device,
                "rule": settings.rule,
                "precision": settings.precision.value if settings.precision else None,
                "require_own_kernels": settings.require_own_kernels,
                "repair_inputs": settings.repair_inputs,
                "compile_baselines": settings.compile_baselines,
                "autotune_baseline": settings.autotune_baseline,
                "cache_dir": str(settings.cache_dir),
                "hidden": [str(path.absolute()) for path in settings.hidden],
                "compiler": self._builder.toolchain.describe(cuda=settings.device == "cuda"),
                "sampler": str(self._libraries.sampler) if self._libraries.sampler else None,
                "helper": str(self._libraries.cuda_helper) if self._libraries.cuda_helper else None,
                "reduction": str(self._libraries.reduction) if self._libraries.reduction else None,
            },
            sandboxed=False,
            limits=Limits(seconds=7 * 86400, memory_bytes=1 << 50, processes=4096, file_bytes=1 << 50, open_files=4096),
            share_nursery=True,
        )
        self._init_args = self._receive(SETUP_SECONDS, "ready")["init_args"]

    def _request(self, operation: str, **arguments: Any) -> Any:
        self._start()
        assert self._judge is not None
        try:
            send_json(self._judge.sock, {"op": operation, **arguments}, timeout=60.0, max_bytes=MESSAGE_BYTES)
        except ChannelError as error:
            raise self._lost(error) from error
        return self._receive(REQUEST_SECONDS, "result")

    def _receive(self, seconds: float, key: str) -> Any:
        assert self._judge is not None
        try:
            reply = receive_json(self._judge.sock, timeout=seconds, max_bytes=MESSAGE_BYTES)
        except ChannelError as error:
            raise self._lost(error) from error
        if "problem_error" in reply:
            raise ProblemError(reply["problem_error"])
        if "judge_error" in reply:
            raise EvaluatorError(
                f"the judge failed, which is our fault and not the candidate's:\n{reply['judge_error']}"
            )
        return reply[key]

    def _lost(self, error: ChannelError) -> EvaluatorError:
        assert self._judge is not None
        status = self._judge.wait(5.0)
        self._judge.kill()
        self._judge.close()
        self._judge = None
        detail = f": {status.output[-1000:]}" if status is not None and status.output else ""
        return EvaluatorError(
            f"the judge's process ended ({error}); a new one is started for the next candidate{detail}"
        )


def _program(source: str, build: BuildResult) -> dict[str, Any]:
    if build.verdict is not None:
        raise ValueError("a candidate that was not built can't be judged")
    kernels = sorted({name for m in build.modules for k in m.kernels for name in (k.name, k.mangled)})
    modules = [{"name": m.name, "library": m.library, "call": m.call} for m in build.modules]
    return {"source": source, "modules": modules, "kernels": kernels}
