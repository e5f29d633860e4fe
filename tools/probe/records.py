"""How a look at a candidate ended, where it ended badly."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.types import Record

Ending = Literal["answered", "raised", "timeout", "out_of_memory", "crashed", "exited", "malformed"]


class Trouble(Record):
    """The candidate did not come to its end. `line` is in the candidate's file; `output` the end of what was printed.

    `refused` is what the sandbox did not let it do.
    """

    ended: Ending
    type: str | None = None
    message: str = ""
    line: int | None = None
    source_line: str | None = None
    signal: int | None = None
    output: str = ""
    refused: list[str] = Field(default_factory=list)
