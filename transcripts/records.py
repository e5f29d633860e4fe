"""The few fields of a tool's record that a review shows. This package does not know the tools, so it reads their JSON
leniently: what is missing or of another form is not shown, and nothing here can fail on a record."""

from __future__ import annotations

from collections.abc import Iterator

from pydantic import BaseModel, ValidationError

from transcripts.events import JsonObject


class FindingView(BaseModel):
    severity: str = "error"
    summary: str = ""


class DiagnosticView(BaseModel):
    severity: str = "error"
    message: str = ""
    file: str | None = None
    line: int | None = None

    @property
    def place(self) -> str:
        return ":".join(str(part) for part in (self.file, self.line) if part is not None)


class IntervalView(BaseModel):
    value: float
    low: float
    high: float


class BuildView(BaseModel):
    ok: bool = True
    seconds: float | None = None
    cached: bool = False
    diagnostics: list[DiagnosticView] = []
    findings: list[FindingView] = []


class CorrectnessView(BaseModel):
    verdict: str | None = None
    findings: list[FindingView] = []


class TimingView(BaseModel):
    candidate_us: IntervalView
    reference_us: IntervalView
    speedup: IntervalView
    claim: str = ""
    findings: list[FindingView] = []


class LimitView(BaseModel):
    code: str = ""


class ProfileView(BaseModel):
    limit: LimitView | None = None


class AccessView(BaseModel):
    kind: str = ""
    detail: str = ""
    file: str | None = None
    line: int | None = None


class MemoryView(BaseModel):
    findings: list[AccessView] = []


class RecordView(BaseModel):
    """Any record of a tool's, or an `EvaluationResult`: whichever of these fields it has."""

    kind: str = ""
    kernel: str | None = None
    edited_from: str | None = None
    code: str | None = None
    problems: list[str] = []
    verdict: str | None = None
    build: BuildView | None = None
    correctness: CorrectnessView | None = None
    timing: TimingView | None = None
    profile: ProfileView | None = None
    memory: MemoryView | None = None

    @classmethod
    def of(cls, record: JsonObject) -> RecordView:
        """The view of a record; an empty one if it is of no such form."""
        try:
            return cls.model_validate(record)
        except ValidationError:
            return cls(kind=str(record.get("kind", "")))

    @property
    def outcome(self) -> str:
        """One word for what the call came to."""
        if self.kind == "refusal":
            return (self.code or "refused").replace("_", " ")
        if self.verdict is not None:
            return self.verdict
        if self.kind in ("submitted", "tuned", "experiment"):
            return self.kind
        if self.kind == "profile":
            limit = self.profile.limit if self.profile is not None else None
            return f"profiled: {limit.code.replace('_', ' ')}" if limit is not None else "profiled"
        if self.kind == "memory":
            count = len(self.memory.findings) if self.memory is not None else 0
            return f"memory checked: {count} finding{'s' if count != 1 else ''}"
        return "built" if self.build is not None and self.build.ok else "saved" if self.kernel else "done"

    def findings(self) -> Iterator[FindingView]:
        """What was found, in the order of the stages."""
        for stage in (self.build, self.correctness, self.timing):
            if stage is not None:
                yield from stage.findings
        for access in self.memory.findings if self.memory is not None else []:
            place = f" at {access.file}:{access.line}" if access.line is not None else ""
            yield FindingView(summary=f"{access.kind.replace('_', ' ')}{place}: {access.detail}")
