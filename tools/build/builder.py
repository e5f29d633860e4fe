"""`Builder`: the text of a candidate file in, a `BuildResult` out."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import os
import shutil
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tools.build.cache import BuildCache, build_key
from tools.build.calls import BuildCall, CompileOutcome
from tools.build.capturing import Captured, capture_calls
from tools.build.certain import certain_errors
from tools.build.commands import Commands
from tools.build.fast import FastKit, compile_fast, prepare
from tools.build.instrument import Instrument
from tools.build.names import KnownNames, known_names
from tools.build.pretence import device_properties
from tools.build.settling import Settled, settle_all
from tools.build.standalone import completed, differs, with_preamble
from tools.build.stock import compile_stock
from tools.build.target import DEFAULT_ARCH, device_arch
from tools.build.toolchain import Toolchain, find_toolchain
from tools.build.visible import visible
from tools.nursery import Nursery
from tools.types import BuildResult, BuiltModule, Diagnostic, Finding, SandboxLevel, Verdict

BUILD_SECONDS = 300.0
NAMES_SECONDS = 60.0
LEAST_SPACE = 64 << 20
"""Bytes of free disk below which a failed build is not blamed on the candidate."""
Route = Literal["fast", "stock"]


@dataclass(slots=True)
class _Report:
    """What a build gathers on its way to a `BuildResult`."""

    source_key: str
    begin: float
    log_dir: Path
    diagnostics: list[Diagnostic] = field(default_factory=list)
    added: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    modules: list[BuiltModule] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def result(self, verdict: Verdict | None) -> BuildResult:
        path = self.log_dir / "build.log"
        with contextlib.suppress(OSError):  # a full disk costs the log, not the verdict
            self.log_dir.mkdir(parents=True, exist_ok=True)
            path.write_text("".join(self.log), encoding="utf-8", errors="replace")
        return BuildResult(
            ok=verdict is None,
            verdict=verdict,
            source_key=self.source_key,
            modules=self.modules if verdict is None else [],
            diagnostics=self.diagnostics,
            added=self.added,
            findings=self.findings,
            seconds=time.monotonic() - self.begin,
            cached=bool(self.modules) and all(m.cached for m in self.modules),
            log_path=str(path),
        )


class Builder:
    """Builds candidates for one device. Safe for several threads; compilers share the machine's slots.

    `arch` is the CUDA target, such as sm_90a; None takes the device's own. `hidden` folders are covered for the
    candidate's own code. Raises ToolchainError from the constructor when a compiler is missing.
    """

    def __init__(
        self,
        *,
        nursery: Nursery,
        device: Literal["cuda", "cpu"],
        level: SandboxLevel,
        cache_dir: Path,
        arch: str | None = None,
        hidden: Sequence[Path] = (),
    ) -> None:
        self.nursery = nursery
        self.hidden = list(hidden)
        self.device: Literal["cuda", "cpu"] = device
        self.level = level
        self.arch = arch or (device_arch() if device == "cuda" else DEFAULT_ARCH)
        self.properties = device_properties(self.arch) if device == "cuda" else None
        self.cache = BuildCache(cache_dir)
        self.toolchain: Toolchain = find_toolchain(cuda=device == "cuda")
        self._kit = _in_background(lambda: prepare(self.toolchain, cache_dir))

    def build(
        self,
        source: str,
        *,
        init_args: list[Any] | None,
        log_dir: Path,
        stock: bool = False,
        script: bool = False,
        instrument: Instrument | None = None,
        timeout: float = BUILD_SECONDS,
    ) -> BuildResult:
        """Build every `load_inline` call of the candidate file `source`.

        `init_args` are the arguments of `ModelNew`, for files that build in the constructor; None when they are not
        known. With `stock` only torch's own headers and command lines count. A `script` is no candidate: it may lack
        a model, and calls. `instrument` adds flags, for a build of its own beside the plain one. `timeout` in seconds
        for each call. Raises OSError when the disk is full, which is not the candidate's fault.
        """
        report = _Report(source_key(source), time.monotonic(), log_dir)
        captured = self._capture(source, init_args, script=script)
        report.log += captured.log
        report.diagnostics += captured.diagnostics
        report.findings += captured.findings
        if captured.verdict is not None:
            return report.result(captured.verdict)
        settled = settle_all(source, captured.calls, device=self.device, arch=self.arch, std=self.toolchain.std)
        report.diagnostics += settled.diagnostics
        report.findings += settled.findings
        if settled.findings:
            return report.result(Verdict.SANDBOX_VIOLATION)
        if settled.diagnostics:
            return report.result(Verdict.COMPILE_ERROR)
        calls = settled.calls if instrument is None else [instrument.applied(call) for call in settled.calls]
        with ThreadPoolExecutor(max_workers=max(1, len(calls))) as pool:
            built = list(pool.map(lambda call: self._build_call(call, stock=stock, timeout=timeout), calls))
        for call, (module, outcome) in zip(calls, built, strict=True):
            report.added += [line for line in (*call.added, *outcome.added) if line not in report.added]
            report.diagnostics += outcome.diagnostics
            report.log.append(f"# {call.name}\n{outcome.log}")
            report.modules.append(module)
        if any(outcome.timed_out for _, outcome in built):
            report.findings.append(
                Finding(
                    code="build_timeout",
                    summary=f"the compiler did not finish in {timeout:.0f} s and was stopped",
                    observed={"seconds": timeout},
                )
            )
            return report.result(Verdict.TIMEOUT)
        if not all(outcome.ok for _, outcome in built):
            return report.result(Verdict.COMPILE_ERROR)
        return report.result(None)

    def ready(self) -> bool:
        """Wait for what the fast route needs, which is built once per installation; False where there is none."""
        return self._fast_kit() is not None

    def standalone(self, source: str, *, init_args: list[Any] | None) -> str:
        """The candidate file `source` as a plain PyTorch builds it: what `BuildResult.added` names is written in.

        A file that needs nothing, or can't be built, comes back unchanged.
        """
        settled = self._settled(source, init_args)
        text = completed(source, settled.pairs)
        if text == source or not any(differs(*pair) for pair in self._settled(text, init_args).pairs):
            return text
        return with_preamble(source, settled.pairs)

    def _capture(self, source: str, init_args: list[Any] | None, *, script: bool = False) -> Captured:
        return capture_calls(
            self.nursery,
            self.cache,
            source,
            properties=self.properties,
            init_args=init_args,
            hidden=[*self.hidden, self.cache.folder],
            script=script,
        )

    def _settled(self, source: str, init_args: list[Any] | None) -> Settled:
        captured = self._capture(source, init_args)
        return settle_all(source, captured.calls, device=self.device, arch=self.arch, std=self.toolchain.std)

    def _build_call(self, call: BuildCall, *, stock: bool, timeout: float) -> tuple[BuiltModule, CompileOutcome]:
        begin = time.monotonic()
        fast = None if stock or self._fast_kit() is None else self._by_route(call, "fast", timeout)
        if fast and (last_word := self._last_word(call, fast[1])):
            (key, _, cached), outcome = fast, last_word
        else:
            # What the fast route can't build is the stock one's to judge.
            key, outcome, cached = self._by_route(call, "stock", timeout)
        place = self.cache.place(key)
        module = BuiltModule(
            name=call.name,
            call=call.call,
            library=str(place / outcome.library) if outcome.library else "",
            functions=outcome.functions,
            route=outcome.route,
            key=key,
            seconds=time.monotonic() - begin,
            cached=cached,
            kernels=outcome.kernels,
        )
        return module, outcome

    def _by_route(self, call: BuildCall, route: Route, timeout: float) -> tuple[str, CompileOutcome, bool]:
        """Key and outcome of one route, and whether it was there already. What the fast one can't build is kept too."""
        kit = self._fast_kit() if route == "fast" else None
        key = build_key(call, self.toolchain, self.arch, route, kit.key if kit else "")
        found = self.cache.find(key)
        if found is not None:
            return key, found, True
        with self.cache.workspace() as folder:
            commands = self._commands(folder, timeout)
            if kit is not None:
                outcome = compile_fast(call, self.toolchain, kit, commands, self.arch)
            else:
                outcome = compile_stock(call, self.toolchain, commands, self.arch)
            if not outcome.ok and shutil.disk_usage(folder).free < LEAST_SPACE:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self.cache.folder))
            # What ran out of time or memory may fare better on another day; the rest would fail again.
            if not outcome.timed_out and not outcome.out_of_memory:
                (folder / "call.json").write_text(call.model_dump_json(), encoding="utf-8")
                self.cache.keep(key, folder, outcome)
            return key, outcome, False

    def _commands(self, folder: Path, seconds: float) -> Commands:
        programs = self.toolchain.program_folders
        shown = [*self.toolchain.readable, *visible(self.cache.folder)]
        return Commands(folder, seconds, self.level, programs, readable=shown, hidden=[*self.hidden, self.cache.folder])

    def _last_word(self, call: BuildCall, fast: CompileOutcome) -> CompileOutcome | None:
        """The fast route's outcome where it decides: it built, took too long, or the stock one must fail as well."""
        kit = self._fast_kit()
        if kit is None or fast.ok or fast.timed_out:
            return fast
        sure = certain_errors(
            fast.diagnostics, call, thin=kit.include, stock=self.toolchain.torch_include, known=self._known_names
        )
        return fast.model_copy(update={"diagnostics": sure}) if sure else None

    def _known_names(self) -> KnownNames | None:
        with self.cache.workspace() as folder:
            commands = self._commands(folder, NAMES_SECONDS)
            return known_names(self.toolchain, commands, self.cache.folder)

    def _fast_kit(self) -> FastKit | None:
        """What the fast route needs; the first build waits for it."""
        return self._kit.result()


def _in_background(work: Callable[[], FastKit | None]) -> Future[FastKit | None]:
    """A future of `work`, run in a daemon thread: a program that ends early does not wait for it."""
    future: Future[FastKit | None] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="fast-kit", daemon=True).start()
    return future


def source_key(source: str) -> str:
    """Identifies a candidate file by its text."""
    return hashlib.sha256(source.encode("utf-8", "surrogatepass")).hexdigest()[:32]
