"""The agent's side of an experiment: starts the child, bounds it, and tells how it ended."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from tools.build.visible import visible
from tools.channel import ChannelError, ChannelTimeout, receive_json
from tools.nursery import Child, ExitStatus, Nursery
from tools.sandbox import Limits
from tools.types import BuildResult, Record

START_SECONDS = 60.0
MOST_OUTPUT = 8000
"""Characters of output that are shown: its beginning and its end."""

_DROPPED = re.compile(r"^\[(\d{1,15}) bytes left out\]$", re.MULTILINE)

Ending = Literal["finished", "raised", "timeout", "out_of_memory", "crashed", "exited", "not_built"]


class Experiment(Record):
    """What a script printed, and how it ended. Proves nothing about any candidate.

    `output` is what came on stdout and stderr, cut in the middle where it was long; `refused` is what the sandbox did
    not let it do. `unbuilt` is True where it ended at a `load_inline` call that was not seen beforehand.
    """

    ended: Ending
    output: str
    raised: str | None = None
    unbuilt: bool = False
    signal: int | None = None
    code: int | None = Field(default=None, description="with which it ended its own process")
    refused: list[str] = Field(default_factory=list)
    limit: float = Field(description="seconds it was given")
    seconds: float = Field(description="seconds that the script itself ran")
    build: BuildResult | None = None


class _Reply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    raised: str | None = Field(max_length=200)
    unbuilt: bool
    seconds: float


def run_script(
    nursery: Nursery,
    source: str,
    build: BuildResult | None,
    *,
    device: Literal["cuda", "cpu"],
    seconds: float,
    cache_dir: Path,
    hidden: Sequence[Path] = (),
) -> Experiment:
    """Run `source` for at most `seconds` in a sandboxed child, with the libraries of `build` and nothing else of the
    builds in `cache_dir`.

    A build that failed is the answer by itself. Raises NurseryError where no child can be started.
    """
    if build is not None and not build.ok:
        return Experiment(ended="not_built", output="", limit=seconds, seconds=0.0, build=build)
    modules = [{"name": m.name, "library": m.library, "call": m.call} for m in build.modules] if build else []
    with nursery.spawn(
        "tools.experiment.child:main",
        {"source": source, "device": device, "modules": modules},
        sandboxed=True,
        limits=Limits(seconds=START_SECONDS + seconds),
        readable=visible(cache_dir, (m["library"] for m in modules)),
        hidden=[*hidden, cache_dir],
    ) as child:
        reply, status = _wait(child, seconds)
    return Experiment(
        ended=_ending(reply, status),
        output=bounded(status.output),
        raised=reply.raised if isinstance(reply, _Reply) else None,
        unbuilt=isinstance(reply, _Reply) and reply.unbuilt,
        signal=status.signal if reply == "gone" else None,
        code=status.code if reply == "gone" else None,
        refused=status.violations[:10],
        limit=seconds,
        seconds=min(reply.seconds if isinstance(reply, _Reply) else status.seconds, START_SECONDS + seconds),
        build=build,
    )


def _wait(child: Child, seconds: float) -> tuple[_Reply | Literal["timeout", "gone"], ExitStatus]:
    reply: _Reply | Literal["timeout", "gone"] = "gone"
    try:
        receive_json(child.sock, timeout=START_SECONDS, max_bytes=4096)
        reply = _Reply.model_validate(receive_json(child.sock, timeout=seconds, max_bytes=4096))
    except ChannelTimeout:
        reply = "timeout"
    except (ChannelError, ValidationError):
        pass  # it ended without a word, or has written to a descriptor that is not its own
    status = None if reply == "timeout" else child.wait(5)
    if status is None:
        child.kill()
        status = child.wait(10) or ExitStatus(code=None, signal=9, timed_out=True)
    return reply, status


def _ending(reply: _Reply | Literal["timeout", "gone"], status: ExitStatus) -> Ending:
    if status.out_of_memory:
        return "out_of_memory"
    if isinstance(reply, _Reply):
        return "raised" if reply.raised else "finished"
    if reply == "timeout" or status.timed_out:
        return "timeout"
    return "exited" if status.signal is None else "crashed"


def bounded(text: str) -> str:
    """At most about MOST_OUTPUT characters of `text`: two thirds from its beginning, the rest from its end."""
    if len(text) <= MOST_OUTPUT:
        return text
    head, tail = MOST_OUTPUT * 2 // 3, MOST_OUTPUT // 3
    middle = text[head:-tail]
    # Of a flood the middle has been dropped before.
    count = len(middle) + sum(int(n) for n in _DROPPED.findall(middle)[:1])
    return f"{text[:head]}\n[{count} characters left out]\n{text[-tail:]}"
