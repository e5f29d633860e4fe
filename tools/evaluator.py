"""The agent's handle on everything that evaluates: nursery, builder and judge, as one object with typed answers.

Free of torch: the processes behind it are started on first use and die with this one.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self

from problems import ProblemSpec
from tools.build import Builder
from tools.build.helpers import helper_libraries
from tools.build.slots import cores
from tools.experiment import Experiment, run_script
from tools.judging import JudgeProcess
from tools.memcheck import MemoryCheck
from tools.nursery import Nursery, NurseryError
from tools.probe.host import Host
from tools.profiling import Profile
from tools.sandbox import probe_level
from tools.settings import EvaluatorError, EvaluatorSettings, default_cache_dir
from tools.tuning import SweepRow
from tools.types import (
    BuildResult,
    CorrectnessResult,
    EvaluationResult,
    ProblemFacts,
    SandboxLevel,
    Soundness,
    TimingResult,
)


class Evaluator:
    """Builds, checks and times candidates of one problem. Use as a context manager.

    Raises ProblemError when the problem can't be used on this device, EvaluatorError when the machine can't.
    """

    def __init__(self, spec: ProblemSpec, settings: EvaluatorSettings) -> None:
        self.spec = spec
        self.settings = settings
        self._nursery: Nursery | None = None
        self._judge: JudgeProcess | None = None
        self._builder: Builder | None = None
        self._init_args: list[Any] | None = None
        self._facts: ProblemFacts | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End every process that was started."""
        self._end_judge()
        if self._nursery is not None:
            self._nursery.close()
            self._nursery = None
        self._builder = None

    def facts(self) -> ProblemFacts:
        """What is known of the problem on this device before anything is tried."""
        self._facts = ProblemFacts.model_validate(self._request("facts"))
        return self._facts

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
            cache_dir=settings.cache_dir,
            hidden=settings.hidden,
        )

    def profile(self, source: str, build: BuildResult, folder: Path) -> Profile:
        """Where the time of a built candidate goes. `folder` keeps what the profiler leaves."""
        from tools.profiling.profiler import profile_candidate

        with _failures_as_ours():
            return profile_candidate(self._host(), source, build, folder, self._facts)

    def check_memory(self, source: str, build: BuildResult, folder: Path) -> MemoryCheck:
        """Errors in a built candidate's memory accesses. `folder` keeps what the tools leave."""
        from tools.memcheck.checker import check_candidate

        with _failures_as_ours():
            return check_candidate(self._host(), source, build, folder)

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
        self._end_judge()
        return self.evaluate(source, log_dir, stage=stage, stock=True)

    def _end_judge(self) -> None:
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    def _host(self) -> Host:
        self._start()
        assert self._nursery is not None and self._builder is not None
        settings = self.settings
        return Host(
            nursery=self._nursery,
            builder=self._builder,
            problem=self.spec.source,
            device=settings.device,
            size=settings.size,
            sizes=self.spec.sizes,
            cache_dir=settings.cache_dir,
            hidden=settings.hidden,
            init_args=self._init_args,
            sampler=self._libraries.sampler,
            cuda_helper=self._libraries.cuda_helper,
        )

    def _start(self) -> None:
        with _failures_as_ours():
            if self._nursery is None:
                self._start_nursery()
            if self._judge is None or not self._judge.alive:
                self._start_judge()

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
        args = {
            "source": self.spec.source,
            "size": settings.size,
            "device": settings.device,
            "rule": settings.rule,
            "precision": settings.precision.value if settings.precision else None,
            "require_own_kernels": settings.require_own_kernels,
            "repair_inputs": settings.repair_inputs,
            "compile_baselines": settings.compile_baselines,
            "autotune_baseline": settings.autotune_baseline,
            "cache_dir": str(settings.cache_dir.absolute()),
            "hidden": [str(path.absolute()) for path in settings.hidden],
            "compiler": self._builder.toolchain.describe(cuda=settings.device == "cuda"),
            "sampler": str(self._libraries.sampler) if self._libraries.sampler else None,
            "helper": str(self._libraries.cuda_helper) if self._libraries.cuda_helper else None,
            "passes": str(self._libraries.passes) if self._libraries.passes else None,
        }
        self._judge = JudgeProcess(self._nursery, args)
        self._init_args = self._judge.ready["init_args"]

    def _request(self, operation: str, **arguments: Any) -> Any:
        self._start()
        assert self._judge is not None
        return self._judge.request(operation, **arguments)


@contextlib.contextmanager
def _failures_as_ours() -> Generator[None]:
    """What the machine lacks becomes an EvaluatorError."""
    try:
        yield
    except NurseryError as error:
        raise EvaluatorError(f"{error}. Run `agent doctor` to see what this machine lacks.") from error


def _program(source: str, build: BuildResult) -> dict[str, Any]:
    if build.verdict is not None:
        raise ValueError("a candidate that was not built can't be judged")
    kernels = sorted({name for m in build.modules for k in m.kernels for name in (k.name, k.mangled)})
    modules = [{"name": m.name, "library": m.library, "call": m.call} for m in build.modules]
    return {"source": source, "modules": modules, "kernels": kernels}


__all__ = ["Evaluator", "EvaluatorError", "EvaluatorSettings", "default_cache_dir"]
