"""Checks the memory accesses of one candidate with every tool that the device has, each within its own time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build.instrument import HOST_SANITIZERS, LINE_INFO
from tools.memcheck import device_report, host_report
from tools.memcheck.records import Check, CheckRun, MemoryCheck, MemoryFinding
from tools.memcheck.runtimes import address_runtimes, find_compute_sanitizer
from tools.probe.host import Answer, Host
from tools.probe.places import Places
from tools.probe.records import Trouble
from tools.sandbox import SandboxError
from tools.types import BuildResult

CHECK_SECONDS = 120.0
POISON_SECONDS = 60.0
BUILD_SECONDS = 120.0
MOST_SECONDS = 2 * (60 + POISON_SECONDS) + BUILD_SECONDS + CHECK_SECONDS
"""The poison runs twice where the candidate does not fit the small size; device tools run side by side."""

MOST_FINDINGS = 8
_DEVICE_CHECKS: tuple[Check, ...] = ("memcheck", "racecheck", "initcheck", "synccheck")
_LOAD_AND_CALL = "tools.memcheck.once:call"
# Of two words for one error the first in this order is kept.
_WORST_FIRST = ("memcheck", "host_sanitizers", "synccheck", "racecheck", "initcheck", "poison")


class _Test(BaseModel):
    model_config = ConfigDict(extra="forbid")

    where: str = Field(pattern="^(allocated|shared)$")
    changed: int = Field(ge=0)
    unwritten: int = Field(ge=0)
    elements: int = Field(ge=0)


class _Poisoned(BaseModel):
    model_config = ConfigDict(extra="forbid")

    tests: list[_Test] = Field(max_length=2)
    damage: list[int] = Field(min_length=3, max_length=3)
    fits: bool
    armed: bool


@dataclass(frozen=True)
class _Part:
    """What one tool gave."""

    run: CheckRun
    findings: Sequence[MemoryFinding] = ()
    elsewhere: int = 0
    trouble: Trouble | None = None


def check_candidate(host: Host, source: str, build: BuildResult, folder: Path) -> MemoryCheck:
    """Every check over a built candidate, on the problem's small size where it has one. At most MOST_SECONDS.

    `folder` keeps what the tools leave. Raises NurseryError where no child can be started.
    """
    began, folder = time.monotonic(), folder.absolute()
    size, fits = host.small, None
    poison, answer, fits_here = _poison(host, source, build, size)
    if size != host.size:
        fits = fits_here
        if not fits:
            size = host.size
            poison, answer, _ = _poison(host, source, build, size)
    done = MemoryCheck(size=size, fits_small=fits, seconds=0.0, most_seconds=MOST_SECONDS, evidence=answer.evidence)
    instrument = LINE_INFO if host.device == "cuda" else HOST_SANITIZERS
    lined = host.builder.build(
        source, init_args=host.init_args, log_dir=folder, instrument=instrument, timeout=BUILD_SECONDS
    )
    if lined.ok:
        args = host.arguments(source, lined, size=size)
        parts = _on_cuda(host, args, lined, folder) if host.device == "cuda" else [_on_cpu(host, args, lined, folder)]
    else:
        done = done.model_copy(update={"build": lined})
        checks: tuple[Check, ...] = _DEVICE_CHECKS if host.device == "cuda" else ("host_sanitizers",)
        parts = [_not_run(check, "not_built") for check in checks]
    parts = [*parts, poison]
    findings = _merged([finding for part in parts for finding in part.findings])
    update = {
        "runs": [part.run for part in parts],
        "findings": findings[:MOST_FINDINGS],
        "left_out": len(findings[MOST_FINDINGS:]),
        "elsewhere": sum(part.elsewhere for part in parts),
        "trouble": next((part.trouble for part in reversed(parts) if part.trouble is not None), None),
        "seconds": time.monotonic() - began,
    }
    return done.model_copy(update=update)


def _on_cpu(host: Host, args: dict[str, Any], build: BuildResult, folder: Path) -> _Part:
    runtimes = address_runtimes(host.builder.toolchain.cxx)
    if not runtimes:
        return _not_run("host_sanitizers", "no_runtime")
    stack = f'stack_trace_format="{host_report.STACK_FORMAT}"'
    environment = {
        "LD_PRELOAD": ":".join(map(str, runtimes)),
        "ASAN_OPTIONS": f"detect_leaks=0:halt_on_error=0:detect_stack_use_after_return=1:{stack}",
        "UBSAN_OPTIONS": f"print_stacktrace=1:{stack}",
    }
    return _run_tool(
        "host_sanitizers",
        lambda: host.run([], _LOAD_AND_CALL, args, folder / "host", CHECK_SECONDS, environment=environment),
        lambda text: host_report.parse(text, Places(build)),
    )


def _on_cuda(host: Host, args: dict[str, Any], build: BuildResult, folder: Path) -> list[_Part]:
    nvcc = host.builder.toolchain.nvcc
    program = find_compute_sanitizer(Path(nvcc.home) if nvcc else None)
    if program is None:
        return [_not_run(check, "not_installed") for check in _DEVICE_CHECKS]
    if not host.isolated:
        return [_not_run(check, "no_namespaces") for check in _DEVICE_CHECKS]
    places, names = Places(build), [n for m in build.modules for k in m.kernels for n in (k.name, k.mangled)]

    def one(check: Check) -> _Part:
        return _run_tool(
            check,
            lambda: host.run(
                device_command(program, check),
                _LOAD_AND_CALL,
                args,
                folder / check,
                CHECK_SECONDS,
                # With the caching allocator a small overrun lands in a block of its own making.
                environment={"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
                sockets=True,
                readable=[program.resolve().parent],
            ),
            lambda text: device_report.parse(text, check, places, names),
            device_report.unread,
        )

    with ThreadPoolExecutor(len(_DEVICE_CHECKS)) as pool:
        return list(pool.map(one, _DEVICE_CHECKS))


def device_command(program: Path, check: Check) -> list[str]:
    """compute-sanitizer with one tool, as a prefix to a program."""
    return [
        str(program),
        *("--tool", check, "--print-limit", "40", "--show-backtrace", "device"),
        *("--target-processes", "application-only", "--launch-timeout", "60"),
        # Without padding the next allocation begins where one ends, and what runs over an end lands in memory that is
        # somebody's.
        *(("--report-api-errors", "no", "--padding", "512") if check == "memcheck" else ()),
    ]


def _run_tool(
    check: Check,
    run: Callable[[], Answer],
    parse: Callable[[str], tuple[list[MemoryFinding], int]],
    unread: Callable[[str], str] = lambda _: "",
) -> _Part:
    """Run a tool and read what it printed; an error of the machine's is told and ends nothing else.

    A report of which nothing was read is no clean one: `unread` tells what is left in it.
    """
    try:
        answer = run()
    except (SandboxError, OSError) as error:
        return _Part(CheckRun(check=check, ended="failed", why="trouble", said=str(error)[:300]))
    findings, elsewhere = parse(answer.output)
    trouble = answer.trouble
    if trouble is not None and findings:
        trouble = None  # what it died of is among the findings
    left = "" if answer.trouble is not None or findings or elsewhere else unread(answer.output)
    failed = (answer.trouble is not None and not findings) or bool(left)
    timed_out = answer.trouble is not None and answer.trouble.ended == "timeout"
    ended = "timeout" if timed_out else "failed" if failed else "found" if findings else "clean"
    said = "" if not failed or timed_out else "; ".join((*answer.refused, left[:300] or _last_words(answer)))
    return _Part(
        CheckRun(check=check, ended=ended, why="trouble" if failed else None, said=said, seconds=answer.seconds),
        findings,
        elsewhere,
        trouble,
    )


def _last_words(answer: Answer) -> str:
    """Why it failed: what the candidate raised, or the end of what was printed."""
    trouble = answer.trouble
    if trouble is None:
        return ""
    if trouble.type:
        return f"{trouble.type}: {trouble.message}"[:300]
    lines = [line for line in trouble.output.splitlines() if line.strip() and not line.startswith("    #")]
    return "; ".join(lines[-4:])[:400]


def _poison(host: Host, source: str, build: BuildResult, size: str) -> tuple[_Part, Answer, bool]:
    answer = host.ask(
        "tools.memcheck.poisoned:measure", host.arguments(source, build, size=size), POISON_SECONDS, guarded=True
    )
    if answer.reply is None:
        timeout = answer.trouble is not None and answer.trouble.ended == "timeout"
        run = CheckRun(
            check="poison",
            ended="timeout" if timeout else "failed",
            why="trouble",
            said=_last_words(answer),
            seconds=answer.seconds,
        )
        return _Part(run, trouble=answer.trouble), answer, False
    try:
        read = _Poisoned.model_validate(answer.reply)
    except ValidationError:
        return (
            _Part(CheckRun(check="poison", ended="failed", why="trouble"), trouble=Trouble(ended="malformed")),
            answer,
            False,
        )
    if not read.armed:
        return _not_run("poison", "no_guard"), answer, read.fits
    findings = _of_poison(read)
    ended = "found" if findings else "clean"
    return _Part(CheckRun(check="poison", ended=ended, seconds=answer.seconds), findings), answer, read.fits


def _of_poison(read: _Poisoned) -> list[MemoryFinding]:
    found: list[MemoryFinding] = []

    def add(kind: str, detail: str, count: int) -> None:
        found.append(MemoryFinding(check="poison", kind=kind, detail=detail, count=count))

    for test in read.tests:
        if test.changed:
            kind = "uninitialised_shared" if test.where == "shared" else "uninitialised_memory"
            add(kind, f"{test.changed} of {test.elements} output elements", test.changed)
        if test.unwritten:
            add("unwritten_output", f"{test.unwritten} of {test.elements} output elements", test.unwritten)
    blocks, size, offset = read.damage
    if blocks:
        where = f"{-offset} bytes before its beginning" if offset < 0 else f"at byte {offset}"
        add("write_outside_block", f"{blocks} blocks, the first of {size} bytes {where}", blocks)
    return found


def _merged(findings: list[MemoryFinding]) -> list[MemoryFinding]:
    """One for each kind and place, located ones first, and no vaguer word for what another tool located."""
    order = {check: index for index, check in enumerate(_WORST_FIRST)}
    kinds = {f.kind for f in findings if f.line is not None}
    writes = any(kind.endswith("_write") for kind in kinds)
    kept = [f for f in findings if not (f.kind == "write_outside_block" and writes)]
    return sorted(kept, key=lambda f: (f.line is None, order[f.check]))


def _not_run(check: Check, why: Any) -> _Part:
    return _Part(CheckRun(check=check, ended="not_run", why=why))
