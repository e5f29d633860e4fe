"""The agent's side: start a child or a program that looks at a candidate, bound it, and tell how it ended."""

from __future__ import annotations

import functools
import json
import os
import secrets
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build import Builder
from tools.build.visible import visible
from tools.channel import ChannelError, ChannelTimeout, receive_json
from tools.nursery import Child, ExitStatus, Nursery
from tools.nursery.environment import child_environment
from tools.probe.instrument import run_instrumented
from tools.probe.records import Ending, Trouble
from tools.sandbox import Completed, Limits, run_sandboxed
from tools.types import BuildResult, Evidence, SandboxLevel

START_SECONDS = 60.0
REPLY_BYTES = 4 << 20
FILE_BYTES = 512 << 20
TAIL = 1500


class _Raised(BaseModel):
    model_config = ConfigDict(extra="forbid")

    kind: str = Field(max_length=40)
    type: str = Field(max_length=200)
    message: str = Field(default="", max_length=4000)
    line: int | None = None
    source_line: str | None = Field(default=None, max_length=2000)


@dataclass(frozen=True)
class Answer:
    """What a look at a candidate gave: `reply`, or the `trouble` that it ended in. None of it can be believed blindly.

    `evidence` is None where the process never came to run the candidate, or is a program under an instrument.
    `refused` is what the sandbox did not let it, or its instrument, do.
    """

    reply: dict[str, Any] | None
    trouble: Trouble | None
    output: str = ""
    evidence: Evidence | None = None
    seconds: float = 0.0
    refused: Sequence[str] = ()


@dataclass(frozen=True)
class Host:
    """Where candidates of one problem can be run unjudged. `sampler` and `cuda_helper` are our own small libraries."""

    nursery: Nursery
    builder: Builder
    problem: str
    device: Literal["cuda", "cpu"]
    size: str
    sizes: Sequence[str]
    cache_dir: Path
    hidden: Sequence[Path] = ()
    init_args: list[Any] | None = None
    sampler: Path | None = None
    cuda_helper: Path | None = None
    seed: int = field(default_factory=lambda: secrets.randbits(31))

    def arguments(self, source: str, build: BuildResult, *, size: str | None = None) -> dict[str, Any]:
        """What `tools.probe.subject.load` needs. `size` is another one than the run's."""
        return {
            "source": source,
            "modules": [{"name": m.name, "library": m.library, "call": m.call} for m in build.modules],
            "problem": self.problem,
            "size": size or self.size,
            "device": self.device,
            "seed": self.seed,
        }

    def ask(self, target: str, args: dict[str, Any], seconds: float, *, guarded: bool = False) -> Answer:
        """Call `target` ("package.module:function") in a sandboxed child that has `seconds` once it is up.

        With `guarded` on CUDA, PyTorch allocates with poison and guard bands. Raises NurseryError.
        """
        toolchain = self.builder.toolchain
        more = {
            "target": target,
            "level": self.nursery.level.value,
            "compiler": toolchain.describe(cuda=self.device == "cuda"),
            "helper": str(self.cuda_helper) if guarded and self.cuda_helper else None,
        }
        with self.nursery.spawn(
            "tools.probe.child:main",
            {**args, **more},
            sandboxed=True,
            limits=Limits(seconds=START_SECONDS + seconds),
            readable=visible(self.cache_dir, _libraries(args)),
            hidden=[*self.hidden, self.cache_dir],
        ) as child:
            return _hear(child, seconds)

    def run(
        self,
        prefix: Sequence[str],
        target: str,
        args: dict[str, Any],
        folder: Path,
        seconds: float,
        *,
        environment: dict[str, str] | None = None,
        sockets: bool = False,
        counters: bool = False,
        readable: Sequence[Path] = (),
    ) -> Answer:
        """Call `target` in a program of its own, started by the command `prefix` (an instrument; empty for none).

        `folder` is for the exchange, and the program's home. An instrument that talks to what it starts needs
        `sockets`. Raises SandboxError.
        """
        folder = folder.absolute()
        folder.mkdir(parents=True, exist_ok=True)
        request, answer = folder / "request.json", folder / "reply.json"
        request.write_text(json.dumps({**args, "target": target}), encoding="utf-8")
        answer.unlink(missing_ok=True)
        done = self.execute(
            [*prefix, sys.executable, "-P", "-m", "tools.probe.program", str(request), str(answer)],
            folder,
            seconds,
            environment=environment,
            sockets=sockets,
            counters=counters,
            readable=[*readable, *visible(self.cache_dir, _libraries(args))],
        )
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        found = _read_reply(answer)
        trouble = None if found is not None and "reply" in found else _trouble_of(found, done, text)
        reply = found.get("reply") if found else None
        return Answer(reply, trouble, text, seconds=done.seconds, refused=done.violations[:5])

    def execute(
        self,
        argv: Sequence[str],
        folder: Path,
        seconds: float,
        *,
        environment: dict[str, str] | None = None,
        sockets: bool = False,
        counters: bool = False,
        readable: Sequence[Path] = (),
    ) -> Completed:
        """Run a program that may write to `folder`. With `counters` it may read the GPU's counters, as root.

        `sockets` lead nowhere but to itself. Raises SandboxError.
        """
        # A socket's path has to be short, and a run's folder may be deep.
        chosen = {**child_environment(str(folder), None), "TMPDIR": "/tmp", **(environment or {})}
        # The launcher runs without site packages, so it does not know where they lie.
        shown = [*_installation(), *visible(self.cache_dir), *self.builder.toolchain.readable, *readable]
        run = functools.partial(run_instrumented, counters=counters) if sockets or counters else run_sandboxed
        return run(
            argv,
            cwd=folder,
            env=chosen,
            limits=Limits(seconds=seconds, file_bytes=FILE_BYTES),
            writable=[folder],
            readable=shown,
            hidden=[*self.hidden, self.cache_dir],
            level=self.nursery.level,
        )

    @property
    def small(self) -> str:
        """The size on which to look at what takes long: the problem's small one, where it has one."""
        return "small" if "small" in self.sizes else self.size

    @property
    def isolated(self) -> bool:
        """Whether programs here have a network of their own, without which instruments that use sockets are not run."""
        return self.nursery.level is SandboxLevel.NAMESPACES


def _installation() -> list[Path]:
    return [Path(p) for p in dict.fromkeys([sys.prefix, *sys.path]) if p.startswith("/") and Path(p).exists()]


def _libraries(args: dict[str, Any]) -> list[str]:
    """Those that a child is to load."""
    return [module["library"] for module in args.get("modules", [])]


def _hear(child: Child, seconds: float) -> Answer:
    where: Evidence | None = None
    found: dict[str, Any] | None = None
    late = False
    try:
        where = Evidence.model_validate(receive_json(child.sock, timeout=START_SECONDS))
        found = receive_json(child.sock, timeout=seconds, max_bytes=REPLY_BYTES)
    except ChannelTimeout:
        late = True
    except (ChannelError, ValidationError):
        pass  # it ended without a word, or wrote to a descriptor that is not its own
    status = None if late else child.wait(5)
    if status is None:
        child.kill()
        status = child.wait(10) or ExitStatus(code=None, signal=9, timed_out=True)
    if isinstance(found, dict) and isinstance(found.get("reply"), dict):
        return Answer(found["reply"], None, status.output, where, status.seconds)
    trouble = _trouble_of(found if isinstance(found, dict) else None, status, status.output, late=late)
    return Answer(None, trouble, status.output, where, status.seconds)


def _trouble_of(
    found: dict[str, Any] | None, status: ExitStatus | Completed, output: str, *, late: bool = False
) -> Trouble:
    tail, refused = output[-TAIL:], status.violations[:5]
    if found is not None and "error" in found:
        try:
            raised = _Raised.model_validate(found["error"])
        except ValidationError:
            return Trouble(ended="exited", output=tail, refused=refused)
        return Trouble(
            ended="raised",
            type=raised.type,
            message=raised.message,
            line=raised.line,
            source_line=raised.source_line,
            refused=refused,
        )
    ended: Ending = "exited" if status.signal is None else "crashed"
    if status.out_of_memory:
        ended = "out_of_memory"
    elif late or status.timed_out:
        ended = "timeout"
    return Trouble(ended=ended, signal=status.signal, output=tail, refused=refused)


def _read_reply(path: Path) -> dict[str, Any] | None:
    """What the program wrote; it is the candidate's process, so neither a link nor a flood is taken from it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(fd, "rb") as file:
        try:
            found = json.loads(file.read(REPLY_BYTES))
        except (OSError, ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None
