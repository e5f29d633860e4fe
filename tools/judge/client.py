"""The judge's end of one worker: requests with deadlines, replies that are believed only once they are checked."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build.visible import LentBuilds, visible
from tools.channel import ChannelClosed, ChannelGarbage, ChannelTimeout, receive_json, send_json
from tools.judge import threads
from tools.judge.failures import CandidateFailed, ReferenceFailed, exit_failure
from tools.judge.findings import observe
from tools.nursery import Child, Nursery
from tools.sandbox import Limits
from tools.types import Verdict
from tools.worker.arena import Arena
from tools.worker.gate import Gate

REPLY_BYTES = 4 << 20
Microseconds = Annotated[float, Field(ge=0, allow_inf_nan=False)]
LOAD_SECONDS = 60.0
STOP_SECONDS = 3.0
SPIN_SECONDS = 0.0002


class Placed(BaseModel):
    """Where a worker says it has put one output, and what it says of it."""

    model_config = ConfigDict(extra="forbid")

    offset: int = Field(ge=0)
    shape: list[int] = Field(max_length=64)
    stride: list[int] = Field(max_length=64)
    dtype: str = Field(max_length=32)
    bytes: int = Field(ge=0)
    device: str = Field(max_length=16)
    plain: bool
    aliases_input: bool
    address: int


class Reply(BaseModel):
    """An answer to `run` or `time`; `us`, `host_us` and `drained_us` are by the worker's own clock.

    On the CPU the judge fills in what the kernel says that the process has run while it was given inputs, and while its
    outputs were carried away.
    """

    model_config = ConfigDict(extra="forbid")

    outputs: dict[str, Any]
    tensors: list[Placed] = Field(max_length=4096)
    damage: list[int] | None = None
    reseeded: bool = False
    changes: list[str] = Field(default_factory=list, max_length=64)
    flags: list[str] = Field(default_factory=list, max_length=64)
    us: Microseconds = 0.0
    host_us: Microseconds = 0.0
    drained_us: Microseconds = 0.0
    place_us: Microseconds = 0.0
    land_us: Microseconds = 0.0


class Failure(BaseModel):
    """What a candidate raised."""

    kind: str
    type: str = Field(max_length=200)
    message: str = Field(default="", max_length=4000)
    line: int | None = None
    source_line: str | None = Field(default=None, max_length=2000)


class Worker:
    """A sandboxed process for one candidate. `start` returns at once; the first request waits until it is warm.

    Of the build cache in `cache_dir` it sees what holds no candidate's work, and the libraries that are lent to it.
    """

    _dying: ClassVar[list[Worker]] = []

    def __init__(
        self,
        nursery: Nursery,
        arenas: dict[str, Arena],
        args: dict[str, Any],
        limits: Limits,
        *,
        readable: list[Path],
        hidden: list[Path],
        sandboxed: bool = True,
        cache_dir: Path | None = None,
    ) -> None:
        # Which builds it is to see is known only when it is asked to load them.
        self._lent = LentBuilds(cache_dir) if sandboxed and cache_dir is not None else None
        if self._lent is not None and cache_dir is not None:
            readable = [*readable, *visible(cache_dir), self._lent.folder]
            hidden = [*hidden, cache_dir]
        fds = [a.fd for a in arenas.values() if a.fd is not None]
        self.child: Child = nursery.spawn(
            "tools.worker.main:main",
            {**args, "arenas": {name: a.export for name, a in arenas.items()}},
            sandboxed=sandboxed,
            limits=limits,
            readable=readable,
            hidden=hidden,
            fds=fds,
        )
        self.gate = Gate(arenas["gate"]) if "gate" in arenas else None
        """Across the stream of a process on CUDA."""

        self._sandboxed = sandboxed
        self._warm = False
        self._paused = False
        self.dead = False

    def ask(
        self, request: dict[str, Any], seconds: float, meanwhile: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        """Send one request, do something `meanwhile`, and return the reply. CandidateFailed for everything that can go
        wrong on the other side; where a trusted process is there, ReferenceFailed."""
        self.await_start()
        paused = self._paused
        self.resume()
        try:
            reply = self._exchange(request, seconds, meanwhile)
            if "error" in reply:
                raise self._raised(reply["error"])
            if paused:
                self.pause()
            return reply
        except CandidateFailed as failed:
            if self._sandboxed:
                raise
            raise ReferenceFailed(f"the reference's process failed: {failed}") from failed

    def run(self, request: dict[str, Any], seconds: float) -> Reply:
        """`ask` for requests that return outputs."""
        try:
            reply = Reply.model_validate(self.ask(request, seconds))
        except ValidationError as error:
            raise self._forged(str(error.errors()[0]["msg"])) from error
        if self._sandboxed and not all(place.plain for place in reply.tensors):
            # It computes what it likes whenever somebody looks at it.
            summary = "forward returns a tensor subclass, not a tensor"
            raise CandidateFailed(Verdict.CHEATING, observe("tensor_subclass", summary))
        return reply

    def lend(self, modules: list[dict[str, str]]) -> list[dict[str, str]]:
        """Make built libraries visible to the process. Returns them with the paths that they have there."""
        return modules if self._lent is None else self._lent.lend(modules)

    def pause(self) -> None:
        """Have the process and all its threads stand still until it is resumed, or asked for something. Returns once
        they do: a thread in a long system call goes on until that ends. CandidateFailed where that takes too long."""
        if self._paused:
            return
        self._signal(signal.SIGSTOP)
        self._paused = True
        began = time.monotonic()
        while not threads.stand_still(self.child.pid):
            taken = time.monotonic() - began
            if taken > STOP_SECONDS and self._sandboxed:
                self.end()
                summary = f"goes on working for more than {STOP_SECONDS:.0f} s after its answer"
                raise CandidateFailed(Verdict.TIMEOUT, observe("hung", summary, seconds=STOP_SECONDS))
            if taken > STOP_SECONDS:
                return
            if taken > SPIN_SECONDS:
                time.sleep(SPIN_SECONDS)

    def resume(self) -> None:
        """Let a paused process go on."""
        if self._paused:
            self._paused = False
            self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(OSError):  # it has just ended: the next request will say so
            os.kill(self.child.pid, number)

    def close(self) -> None:
        """Kill the process and everything it has started, and go on: with much device memory to give back, dying takes
        a tenth of a second. `settle` waits for it."""
        self.dead = True
        self.child.kill()
        if self._lent is not None:
            self._lent.close()  # what it has loaded it keeps
        Worker._dying.append(self)

    @classmethod
    def settle(cls) -> None:
        """Wait until the processes that were killed are gone, and what they held."""
        while cls._dying:
            worker = cls._dying.pop()
            worker.child.wait(2.0)
            worker.child.close()

    def await_start(self) -> None:
        """Wait for the process to be warm. No candidate has run in it yet: a failure is ours, and an exception of
        ours."""
        if self._warm:
            return
        try:
            self._exchange(None, LOAD_SECONDS)
        except CandidateFailed as failed:
            tail = failed.finding.observed.get("output_tail") or ""
            raise RuntimeError(f"a worker did not start: {failed}\n{tail}") from failed
        self._warm = True

    def _exchange(
        self, request: dict[str, Any] | None, seconds: float, meanwhile: Callable[[], None] | None = None
    ) -> dict[str, Any]:
        try:
            if request is not None:
                send_json(self.child.sock, request, timeout=seconds)
            if meanwhile is not None:
                meanwhile()
            reply = receive_json(self.child.sock, timeout=seconds, max_bytes=REPLY_BYTES)
        except ChannelTimeout as error:
            self.end()
            raise self._hung(seconds) from error
        except ChannelGarbage as error:
            self.end()
            raise self._forged(str(error)) from error
        except (ChannelClosed, OSError) as error:
            self.dead = True
            raise self._died() from error
        if not isinstance(reply, dict):
            raise self._forged("not an object")
        return reply

    def end(self) -> None:
        """Kill the process, and wait until it is gone."""
        self.dead = True
        self.child.kill()
        self.child.wait(2.0)

    def _hung(self, seconds: float) -> CandidateFailed:
        summary = f"no answer within {seconds:.0f} s"
        return CandidateFailed(Verdict.TIMEOUT, observe("hung", summary, seconds=seconds))

    def _forged(self, why: str) -> CandidateFailed:
        finding = observe("forged_reply", f"the reply is not one that our worker sends: {why}"[:500])
        return CandidateFailed(Verdict.CHEATING, finding)

    def _died(self) -> CandidateFailed:
        status = self.child.wait(5.0)
        if status is None:
            return self._hung(5.0)
        return exit_failure(status)

    def violations(self) -> list[str]:
        """What the sandbox has refused so far. Ends the process to learn it."""
        self.child.kill()
        status = self.child.wait(5.0)
        return list(status.violations) if status is not None else []

    def _raised(self, error: Any) -> CandidateFailed:
        try:
            failure = Failure.model_validate(error)
        except ValidationError as bad:
            return self._forged(str(bad.errors()[0]["msg"]))
        if failure.kind == "exited":
            finding = observe("exited", f"the candidate raised {failure.type}({failure.message})")
            return CandidateFailed(Verdict.CHEATING, finding)
        code = "wrong_structure" if failure.kind == "tree" else "python_exception"
        verdict = {"tree": Verdict.WRONG_RESULT, "load": Verdict.LOAD_ERROR}.get(failure.kind, Verdict.RUNTIME_ERROR)
        where = f" at line {failure.line}" if failure.line else ""
        summary = f"{failure.type}{where}: {failure.message}"[:1500]
        observed: dict[str, Any] = {"type": failure.type, "line": failure.line, "source_line": failure.source_line}
        return CandidateFailed(verdict, observe(code, summary, **observed))
