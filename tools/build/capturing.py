"""The agent's side of a capture: starts the child, judges how it ended, and reads its calls as untrusted data."""

from __future__ import annotations

import contextlib
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build.cache import BuildCache
from tools.build.calls import CaughtCall
from tools.channel import ChannelError, ChannelGarbage, ChannelTimeout, receive_json
from tools.nursery import Nursery
from tools.sandbox import ExitStatus, Limits
from tools.types import Diagnostic, Finding, Verdict

CAPTURE_SECONDS = 30.0
_LIMITS = Limits(seconds=CAPTURE_SECONDS + 5, memory_bytes=8 << 30, processes=16, file_bytes=256 << 20)


class _Reply(BaseModel):
    """What a capture child says, held to its types before anything is done with it."""

    model_config = ConfigDict(extra="forbid")

    calls: list[CaughtCall] = Field(max_length=64)
    error: Diagnostic | None
    has_model: bool


@dataclass(slots=True)
class Captured:
    """The calls of a candidate, or the verdict that ends its build."""

    calls: list[CaughtCall] = field(default_factory=list)
    verdict: Verdict | None = None
    diagnostics: list[Diagnostic] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    log: list[str] = field(default_factory=list)


def capture_calls(
    nursery: Nursery,
    cache: BuildCache,
    source: str,
    *,
    properties: dict[str, Any] | None,
    init_args: list[Any] | None,
    hidden: Sequence[Path] = (),
    script: bool = False,
) -> Captured:
    """Run `source` in a sandboxed child of `nursery` and return its `load_inline` calls.

    `properties` are those of the CUDA device, None where the target is the CPU. A file that was captured before is not
    run again. A `script` is run as `__main__`; it needs no model and no calls, and what it raises is its own affair.
    """
    args = {"source": source, "properties": properties, "init_args": init_args}
    if script:
        args["module"] = "__main__"
    place = cache.folder / "captures" / f"{_key(args)}.json"
    with contextlib.suppress(OSError, ValueError):
        return _judge(_Reply.model_validate_json(place.read_bytes()), source, script)
    reply, status = _run(nursery, args, hidden)
    captured = _judge_exit(reply, status, source, script)
    captured.log.append(f"# running the file up to its builds\n{status.output}\n")
    if isinstance(reply, _Reply) and captured.verdict is None:
        _keep(place, reply)
    return captured


def _key(args: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(["capture-3", args], sort_keys=True).encode("utf-8")).hexdigest()[:32]


def _keep(place: Path, reply: _Reply) -> None:
    with contextlib.suppress(OSError):
        place.parent.mkdir(exist_ok=True)
        aside = place.with_suffix(f".{id(reply)}")
        aside.write_text(reply.model_dump_json(), encoding="utf-8")
        aside.rename(place)


def _run(nursery: Nursery, args: dict[str, Any], hidden: Sequence[Path]) -> tuple[_Reply | str, ExitStatus]:
    """The reply, or in one word what went wrong with it; and how the child ended."""
    with nursery.spawn("tools.build.capture:main", args, sandboxed=True, limits=_LIMITS, hidden=hidden) as child:
        try:
            reply: _Reply | str = _Reply.model_validate(receive_json(child.sock, timeout=CAPTURE_SECONDS))
        except ChannelTimeout:
            reply = "timeout"
        except (ChannelGarbage, ValidationError):
            reply = "garbage"
        except ChannelError:
            reply = "gone"
        status = child.wait(0.5 if isinstance(reply, str) else 5)
        if status is None:
            child.kill()
            status = child.wait(10) or ExitStatus(code=None, signal=9, timed_out=True)
        return reply, status


def _judge_exit(reply: _Reply | str, status: ExitStatus, source: str, script: bool) -> Captured:
    """How the child ended comes before what it said."""
    if status.violations:
        finding = Finding(
            code="sandbox_violation",
            summary=f"at import the file tried what the sandbox forbids: {'; '.join(status.violations[:5])}",
            observed={"violations": status.violations[:20]},
        )
        return Captured(verdict=Verdict.SANDBOX_VIOLATION, findings=[finding])
    if isinstance(reply, _Reply):
        return _judge(reply, source, script)
    if status.out_of_memory:
        return _load_error("python_memory", "the file takes more memory at import than a build may use (8 GiB)")
    if reply == "timeout" or status.timed_out:
        finding = Finding(
            code="import_timeout",
            summary=f"importing the file did not end within {CAPTURE_SECONDS:.0f} s (a loop, a sleep or a wait)",
            observed={"seconds": CAPTURE_SECONDS},
        )
        return Captured(verdict=Verdict.TIMEOUT, findings=[finding])
    if reply == "garbage":
        return _load_error("python_exit", "the file wrote to a descriptor that is not its own while it was imported")
    how = f"signal {status.signal}" if status.signal else f"exit code {status.code}"
    return _load_error("python_exit", f"the file ended its own process at import ({how}): remove os._exit and the like")


def _load_error(code: str, message: str) -> Captured:
    return Captured(verdict=Verdict.LOAD_ERROR, diagnostics=[Diagnostic(severity="error", code=code, message=message)])


def _judge(reply: _Reply, source: str, script: bool) -> Captured:
    if script:
        return Captured(calls=reply.calls)
    if reply.error is not None:
        return Captured(verdict=Verdict.LOAD_ERROR, diagnostics=[reply.error])
    if not reply.has_model:
        return _load_error("no_model", "the file defines no class ModelNew: name the module that replaces Model so")
    if reply.calls:
        return Captured(calls=reply.calls)
    if "load_inline" in source or "cpp_extension" in source:
        return _load_error(
            "no_call_caught",
            "the file mentions load_inline, but no call of it ran when the file was imported and ModelNew was "
            "constructed: call it at module level",
        )
    finding = Finding(code="no_own_kernel", summary="nothing to build: the file has no load_inline call")
    return Captured(verdict=Verdict.CHEATING, findings=[finding])
