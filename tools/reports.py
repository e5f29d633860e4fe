"""What a tool call comes to: records that a template turns into the text for the model, told apart by `kind`."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from tools.edits import EditMismatch
from tools.experiment import Experiment
from tools.memcheck import MemoryCheck
from tools.profiling import Profile
from tools.tuning import TuneRow
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
    judge_failure: str | None = Field(
        default=None, description="what broke on our side; for the log, not for the model"
    )


class Submitted(Record):
    """The candidate with which the model ends the run. It is correct; the confirmation comes after."""

    kind: Literal["submitted"] = "submitted"
    kernel: str
    fastest: str | None = Field(description="the fastest correct candidate, when that is another one")


class TuneReport(Record):
    """Variants of one source, the best first. `kernel` is the source's own id.

    `best` is the variant that is correct by the full check, as a report of its own; None where none of the fastest is.
    `lines` are those on which each parameter is defined. Of `combinations` in all the constraints were computed for
    `looked_at`, and allowed `allowed`.
    """

    kind: Literal["tuned"] = "tuned"
    kernel: str
    lines: dict[str, list[int]]
    combinations: int
    looked_at: int
    allowed: int
    variants: list[TuneRow]
    best: KernelReport | None
    build_seconds: float
    sweep_seconds: float
    judge_failure: str | None = Field(
        default=None, description="what broke on our side, so that nothing was timed; for the log, not for the model"
    )


class ExperimentReport(Record):
    """What a script of the model's printed. No evidence of anything."""

    kind: Literal["experiment"] = "experiment"
    experiment: Experiment


class ProfileReport(Record):
    """Where the time of one candidate goes. No evidence of any speed."""

    kind: Literal["profile"] = "profile"
    kernel: str
    profile: Profile


class MemoryReport(Record):
    """Errors in one candidate's memory accesses. No verdict: finding none proves nothing."""

    kind: Literal["memory"] = "memory"
    kernel: str
    memory: MemoryCheck


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
        "parameter_not_defined",
        "bad_constraint",
        "nothing_allowed",
    ]
    problems: list[str] = Field(default_factory=list)
    given: str | None = None
    known: list[str] = Field(default_factory=list)
    mismatch: EditMismatch | None = None
    report: KernelReport | None = None


ToolRecord = KernelReport | TuneReport | ProfileReport | MemoryReport | ExperimentReport | Submitted | Refusal


def kernels_of(record: ToolRecord) -> list[str]:
    """The ids of the candidates that a record tells of."""
    match record:
        case KernelReport() | ProfileReport() | MemoryReport() | Submitted():
            return [record.kernel]
        case TuneReport():
            return [record.kernel, *(row.kernel for row in record.variants if row.kernel not in (None, record.kernel))]
        case Refusal(report=KernelReport() as report):
            return [report.kernel]
        case _:
            return []
