"""What a child may do and what became of it, as plain records: wardens of programs run without pydantic."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any, Literal

# `none` is for our own trusted children: watched over, cleaned up after, not held back.
Isolation = Literal["none", "limits", "namespaces"]


# Threads count as processes for the kernel's own limits: room for OpenMP pools on large machines.
THREAD_ROOM = 2048


@dataclass(frozen=True)
class Policy:
    """Times in seconds, sizes in bytes, paths absolute. None means no limit."""

    isolation: Isolation
    seconds: float | None = None
    memory_bytes: int | None = None
    processes: int | None = None
    file_bytes: int | None = None
    open_files: int | None = None
    writable: list[str] = field(default_factory=list)
    readable: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Policy:
        return cls(**data)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class Outcome:
    """How a child ended, as its warden saw it. `error` is set where it could not be started as the policy asks."""

    code: int | None = None
    signal: int | None = None
    timed_out: bool = False
    out_of_memory: bool = False
    violations: list[str] = field(default_factory=list)
    processes_seen: int = 0
    peak_memory: int = 0
    output: str = ""
    seconds: float = 0.0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        return asdict(self)
