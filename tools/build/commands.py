"""Runs compilers in the sandbox: argument lists, never a shell, killed with all that they started."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from tools.build import slots
from tools.sandbox import Limits, run_sandboxed
from tools.types import SandboxLevel

MAX_OUTPUT = 4 << 20
MEMORY_BYTES = 8 << 30
FILE_BYTES = 2 << 30


@dataclass(frozen=True, slots=True)
class Ran:
    """How a command ended: what it printed (standard output and error together), and why it stopped."""

    argv: list[str]
    code: int | None
    output: str
    seconds: float
    timed_out: bool = False
    out_of_memory: bool = False

    @property
    def ok(self) -> bool:
        return self.code == 0


@dataclass(slots=True)
class Commands:
    """Runs the commands of one build inside `folder`, for `seconds` from the first one's start.

    Waiting for a free slot does not count. `path` are folders to find programs in, before the system's;
    `readable` are kept visible where the sandbox would hide them (below /tmp or a `hidden` path).
    """

    folder: Path
    seconds: float
    level: SandboxLevel
    path: list[str] = field(default_factory=list)
    readable: list[Path] = field(default_factory=list)
    hidden: list[Path] = field(default_factory=list)
    log: list[str] = field(default_factory=list)
    _deadline: float | None = None
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def environment(self) -> dict[str, str]:
        """What a compiler needs, and no more: a candidate's flags and sources see no key and no home."""
        path = ":".join([*self.path, "/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
        return {"PATH": path, "LC_ALL": "C", "TMPDIR": str(self.folder), "HOME": str(self.folder)}

    def run(
        self, argv: Sequence[str], *, max_output: int = MAX_OUTPUT, quiet: bool = False, by: Sequence[str] = ()
    ) -> Ran:
        """Run one command in `folder`, as soon as there is a slot for it. Output beyond `max_output` bytes is lost.

        With `quiet` the log keeps the output of a failure only. `by` is a program, with arguments, that runs `argv` in
        its own way; log and result name `argv` alone.
        """
        asked = time.monotonic()
        with slots.semaphore():
            begin = time.monotonic()
            with self._lock:
                self._deadline = begin + self.seconds if self._deadline is None else self._deadline + begin - asked
                left = self._deadline - begin
            ran = (
                self._run(list(argv), list(by), left, max_output)
                if left > 0
                else Ran(list(argv), None, "", 0.0, timed_out=True)
            )
        ending = "timed out" if ran.timed_out else f"exit {ran.code}"
        self.log.append(
            f"$ {' '.join(ran.argv)}\n{'' if quiet and ran.ok else ran.output}[{ending}, {ran.seconds:.1f} s]\n"
        )
        return ran

    def _run(self, argv: list[str], by: list[str], left: float, max_output: int) -> Ran:
        done = run_sandboxed(
            [*by, *argv],
            cwd=self.folder,
            env=self.environment(),
            limits=Limits(
                seconds=left, memory_bytes=MEMORY_BYTES, processes=64, file_bytes=FILE_BYTES, open_files=1024
            ),
            writable=[self.folder],
            readable=self.readable,
            hidden=self.hidden,
            level=self.level,
            max_output=max_output,
        )
        text = (done.stdout + done.stderr).decode("utf-8", "replace")
        return Ran(argv, done.returncode, text, done.seconds, done.timed_out, done.out_of_memory)

    def run_all(self, commands: Sequence[Sequence[str]], by: Sequence[Sequence[str]] = ()) -> list[Ran]:
        """Run several commands, at a time as far as there are slots; results in the order given. `by` for each."""
        runners = by or [()] * len(commands)
        if len(commands) == 1:
            return [self.run(commands[0], by=runners[0])]
        with ThreadPoolExecutor(max_workers=len(commands)) as pool:
            return list(pool.map(lambda argv, runner: self.run(argv, by=runner), commands, runners))
