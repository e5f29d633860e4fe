"""The records that users of the sandbox see: what to allow, and what happened."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

_MIB = 1 << 20


class SandboxError(Exception):
    """The sandbox could not be set up or did not do its work: the machine's or our own fault, never the candidate's."""


class Limits(BaseModel):
    """Bounds on one child and all its descendants. Passing one ends the whole group, and the status says which."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    seconds: float = Field(default=600.0, gt=0, description="wall time of the child's whole life")
    memory_bytes: int = Field(default=16 << 30, gt=0, description="host memory of the whole group, private and shared")
    processes: int = Field(default=64, gt=0, description="processes at one time; threads do not count")
    file_bytes: int = Field(
        default=1 << 30, gt=0, description="one file, the private /tmp, and what is added to the writable folders"
    )
    open_files: int = Field(default=1024, gt=0, description="descriptors per process")


class ExitStatus(BaseModel):
    """How a child ended, told by its warden and not by itself.

    `code` is None when a signal ended it. `violations` are the forbidden things it tried, in words. `peak_memory` in
    bytes, polled, without what it inherited. `output` is the head and tail of what it wrote to stdout and stderr.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    code: int | None
    signal: int | None
    timed_out: bool = False
    out_of_memory: bool = False
    violations: list[str] = Field(default_factory=list)
    processes_seen: int = 0
    peak_memory: int = 0
    output: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """It ended by itself, with code 0, and tried nothing that is forbidden."""
        return self.code == 0 and not self.timed_out and not self.out_of_memory and not self.violations


class Completed(BaseModel):
    """A program that ran in the sandbox and is gone, with all its descendants. Output is cut to the asked size."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    returncode: int | None
    signal: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool = False
    out_of_memory: bool = False
    violations: list[str] = Field(default_factory=list)
    peak_memory: int = 0
    seconds: float
