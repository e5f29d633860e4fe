"""What a memory check of one candidate holds."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.probe.records import Trouble
from tools.types import BuildResult, Evidence, Record

Check = Literal["memcheck", "racecheck", "initcheck", "synccheck", "host_sanitizers", "poison"]


class CheckRun(Record):
    """One tool. `why` says in a code why it was not run, or did not come to its end; `said` are its own words."""

    check: Check
    ended: Literal["clean", "found", "not_run", "timeout", "failed"]
    why: Literal["not_installed", "no_namespaces", "no_runtime", "not_built", "no_guard", "trouble", None] = None
    said: str = ""
    seconds: float = 0.0


class MemoryFinding(Record):
    """One error. `kind` names the sentence in the template, `detail` are the tool's own words in short.

    `file` is the model's own text, such as `cuda_sources`, and `line` a line of it; both None where no line of the
    model's is known. `function` is the kernel or function that it happened in. `other_line` is the second access of a
    race. `count` is how often it was reported.
    """

    check: Check
    kind: str
    detail: str = ""
    file: str | None = None
    line: int | None = None
    source_line: str | None = None
    function: str | None = None
    other_line: int | None = None
    other_source_line: str | None = None
    count: int = 1


class MemoryCheck(Record):
    """All tools over one candidate, on inputs of `size`.

    `fits_small` is False where the problem has a small size and the candidate does not give the reference's values on
    it, as one that is written for fixed shapes; then it was looked at on the size it is for. `elsewhere` counts what
    was reported of code that is not the candidate's. `trouble` is how the candidate ended where it did not finish.
    """

    size: str
    fits_small: bool | None = None
    runs: list[CheckRun] = Field(default_factory=list)
    findings: list[MemoryFinding] = Field(default_factory=list)
    left_out: int = 0
    elsewhere: int = 0
    trouble: Trouble | None = None
    build: BuildResult | None = Field(default=None, description="where the build with line information failed")
    seconds: float
    most_seconds: float
    evidence: Evidence | None = None
