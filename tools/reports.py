"""What a tool call comes to: records that a template turns into the text for the model, told apart by `kind`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.edits import EditMismatch
from tools.types import BuildResult, CorrectnessResult, Record, TimingResult, Verdict


class KernelReport(Record):
    """One candidate as far as it has come. `asked` is the furthest stage that the call asked for.

    `repeated` is True when nothing ran because the same source had been through all of it before.
    """

    kind: Literal["kernel"] = "kernel"
    kernel: str
    asked: Literal["save", "build", "check", "time"]
    edited_from: str | None = None
    repeated: bool = False
    leads: bool = Field(default=False, description="it is the fastest correct candidate now")
    verdict: Verdict | None = None
    build: BuildResult | None = None
    correctness: CorrectnessResult | None = None
    timing: TimingResult | None = None
    judge_failure: str | None = Field(default=None, description="what broke on our side; for the log, not for the model")


class Submitted(Record):
    """The candidate with which the model ends the run. It is correct; the confirmation comes after."""

    kind: Literal["submitted"] = "submitted"
    kernel: str
    fastest: str | None = Field(description="the fastest correct candidate, when that is another one")


class Refusal(Record):
    """The call was not carried out. `code` names the paragraph of the template, the rest are its facts."""

    kind: Literal["refusal"] = "refusal"
    tool: str
    code: Literal[
        "unknown_tool",
        "broken_json",
        "bad_arguments",
        "one_of_source_or_id",
        "empty_source",
        "unknown_id",
        "edit_mismatch",
        "edit_changes_nothing",
        "submit_not_correct",
    ]
    problems: list[str] = Field(default_factory=list)
    given: str | None = None
    known: list[str] = Field(default_factory=list)
    mismatch: EditMismatch | None = None
    report: KernelReport | None = None


ToolRecord = KernelReport | Submitted | Refusal
