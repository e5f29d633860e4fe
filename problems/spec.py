"""What a problem is: the text of a KernelBench file, and what can be read off it without running it."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class ProblemError(Exception):
    """The problem can't be used. The message says why and what to do next."""


class ProblemSpec(BaseModel):
    """A problem as text. Nothing of it has been executed.

    A problem file may define `SMALL`, a dict literal of module-level names to other values: with size `small` the
    judge sets those names after running the file and before it calls `get_init_inputs` and `get_inputs`, which is
    how one file serves a data-centre GPU and a laptop.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(description="short and usable as a folder name, such as layer_norm or kernelbench-1-87")
    source: str
    origin: Literal["path", "bundled", "kernelbench"]
    path: Path | None = None
    sizes: tuple[str, ...] = ("full",)
