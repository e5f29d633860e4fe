"""What the model can call. Each tool is one method: its signature and docstring are the schema the model sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from tools.candidates import Candidate, Candidates, clean_source
from tools.edits import Edit, EditMismatch, apply_edits
from tools.registry import ArgumentsError, Tool, as_tool
from tools.reports import (
    ExperimentReport,
    KernelReport,
    MemoryReport,
    ProfileReport,
    Refusal,
    Submitted,
    ToolRecord,
    TuneReport,
)
from tools.stages import JudgeFailed, Stages
from tools.tuning import Value
from tools.tuning.tuner import CannotTune, Swept, confirmed, planned, sweep
from tools.types import Verdict

if TYPE_CHECKING:
    from tools.evaluator import Evaluator

Source = Annotated[str | None, Field(description="the whole Python file that defines ModelNew")]
KernelId = Annotated[str | None, Field(description="the id of a source sent before, such as k1")]
Choices = Annotated[list[Value], Field(min_length=1, max_length=32)]
MOST_VARIANTS = 32
MOST_SCRIPT_SECONDS = 60


class _Refused(Exception):  # noqa: N818 - an answer to the model, not an error
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class Toolbox:
    """The tools of one run over one evaluator; candidates live in `folder`.

    `on_stage` hears the kernel's id and what is being done to it, for a progress display. An `EvaluatorError` that
    passes through a tool means that nothing can be evaluated any more: it is never the candidate's fault.
    """

    def __init__(
        self, evaluator: Evaluator, folder: Path, *, on_stage: Callable[[str, str], None] = lambda _kernel, _stage: None
    ) -> None:
        self.candidates = Candidates(folder)
        self._folder = folder
        self._evaluator = evaluator
        self._on_stage = on_stage
        self._stages = Stages(evaluator, self.candidates, on_stage)
        self.tools: dict[str, Tool] = {
            tool.name: tool
            for tool in map(
                as_tool,
                (
                    self.evaluate_kernel,
                    self.edit_kernel,
                    self.tune_kernel,
                    self.profile_kernel,
                    self.check_memory,
                    self.run_experiment,
                    self.compile_kernel,
                    self.run_correctness,
                    self.time_kernel,
                    self.submit,
                ),
            )
        }

    def call(self, name: str, arguments: str) -> ToolRecord:
        """Carry out one call as the model wrote it. What can't be carried out becomes a `Refusal`, never an error."""
        tool = self.tools.get(name)
        if tool is None:
            return Refusal(tool=name, code="unknown_tool", given=name, known=list(self.tools))
        try:
            return tool.function(**tool.parse(arguments))
        except ArgumentsError as error:
            return Refusal(
                tool=name,
                code="broken_json" if error.code == "broken_json" else "bad_arguments",
                problems=error.problems,
                given=arguments[:400],
                known=list(tool.arguments.model_fields),
            )
        except _Refused as refused:
            return refused.refusal

    def evaluate_kernel(self, source: Source = None, id: KernelId = None) -> KernelReport:
        """Build, check and time one candidate in one call, stopping at the first step that fails. The recommended
        tool. Give either the whole source of a new candidate or the id of one sent before."""
        return self._stages.advance(self._candidate("evaluate_kernel", source, id), "time")

    def compile_kernel(self, source: Source = None, id: KernelId = None) -> KernelReport:
        """Only build a candidate: compiler diagnostics, and registers, shared memory and spills of each kernel. Give
        either a source or an id."""
        return self._stages.advance(self._candidate("compile_kernel", source, id), "build")

    def run_correctness(self, source: Source = None, id: KernelId = None) -> KernelReport:
        """Check a candidate's outputs against an fp64 oracle on fresh inputs, building it first if needed. Give either
        a source or an id."""
        return self._stages.advance(self._candidate("run_correctness", source, id), "check")

    def time_kernel(self, id: Annotated[str, Field(description="the id of a candidate, such as k1")]) -> KernelReport:
        """Time a correct candidate against the reference, again if it was timed before; it is checked first if it
        was not."""
        candidate = self._known("time_kernel", id)
        if candidate.state.correct and candidate.state.timing is not None:
            candidate = self.candidates.update(candidate.id, timing=None)
        return self._stages.advance(candidate, "time")

    def edit_kernel(
        self,
        id: Annotated[str, Field(description="the id of the candidate to start from, such as k1")],
        edits: Annotated[list[Edit], Field(description="made in this order, all or none", min_length=1)],
        evaluate: Annotated[bool, Field(description="build, check and time the result in the same call")] = True,
    ) -> KernelReport:
        """Make a new candidate from an earlier one by exact replacements, without sending the whole file again. Each
        old text must occur exactly once in the source. The earlier candidate is kept."""
        parent = self._known("edit_kernel", id)
        edited = apply_edits(parent.source, edits)
        if isinstance(edited, EditMismatch):
            raise _Refused(Refusal(tool="edit_kernel", code="edit_mismatch", given=id, mismatch=edited))
        source = clean_source(edited)
        if not source:
            raise _Refused(Refusal(tool="edit_kernel", code="empty_source"))
        if source == parent.source:
            raise _Refused(Refusal(tool="edit_kernel", code="edit_changes_nothing", given=id))
        candidate, _ = self.candidates.add(source, edited_from=parent.id)
        return self._stages.advance(candidate, "time" if evaluate else "save")

    def submit(
        self, id: Annotated[str, Field(description="the id of the candidate to submit, such as k1")]
    ) -> Submitted | Refusal:
        """End the run with this candidate when you expect nothing faster any more. It must be correct; it is checked
        and timed first if it was not. The fastest correct candidate of the run wins, whichever is submitted."""
        report = self._stages.advance(self._known("submit", id), "time")
        if report.verdict is not Verdict.CORRECT:
            return Refusal(tool="submit", code="submit_not_correct", given=report.kernel, report=report)
        best = self.candidates.best
        return Submitted(kernel=report.kernel, fastest=best.id if best and best.id != report.kernel else None)

    def tune_kernel(
        self,
        space: Annotated[
            dict[str, Choices],
            Field(description='values to try: {"TILE": [32, 64], "THREADS": [128, 256]}', min_length=1, max_length=8),
        ],
        source: Source = None,
        id: KernelId = None,
        constraints: Annotated[
            list[str] | None,
            Field(description='conditions on the names, in Python: ["TILE * TILE * 4 <= 49152"]', max_length=16),
        ] = None,
        max_variants: Annotated[int, Field(ge=1, le=MOST_VARIANTS)] = 16,
    ) -> TuneReport:
        """Find the best parameters of a kernel in one call: builds variants of a source in parallel, drops those that
        fail, times the rest against each other, and puts the best through the full check and timing. A parameter is a
        name that the source defines: #define NAME 64, constexpr int NAME = 64; -DNAME=64 in the flags, or NAME = 64 at
        the top level of the Python file. All its definitions get the value; a text is put into C++ as it stands, so it
        may name a type. Give either a source or an id. The best variant gets an id of its own."""
        parent = self._candidate("tune_kernel", source, id)
        try:
            plan = planned(parent.source, space, constraints or [], max_variants)
        except CannotTune as error:
            raise _Refused(error.refusal(parent.id)) from None
        stage = partial(self._on_stage, f"{len(plan.sources)} variants of {parent.id}")
        try:
            swept = self._stages.twice(lambda: sweep(self._evaluator, plan, parent.folder / "variants", stage))
        except JudgeFailed as failed:
            return plan.report(parent.id, Swept(judge_failure=str(failed)), None)

        def judge(variant: str) -> KernelReport:
            return self._stages.advance(self.candidates.add(variant, edited_from=parent.id)[0], "time")

        return plan.report(parent.id, *confirmed(swept, judge))

    def profile_kernel(
        self, id: Annotated[str, Field(description="the id of a candidate, such as k1")]
    ) -> ProfileReport | KernelReport:
        """Find out where the time of a candidate goes and what limits it: on a GPU for each of its kernels throughputs
        against the peak, occupancy, what warps wait for, how memory is accessed, and the profiler's advice; on a CPU
        the share of each function. Ends with the first thing to try. The candidate is built first if it was not."""
        candidate = self._known("profile_kernel", id)
        report = self._stages.advance(candidate, "build")
        if report.build is None or not report.build.ok:
            return report
        self._on_stage(id, "profile")
        found = self._evaluator.profile(candidate.source, report.build, candidate.folder / "profile")
        return ProfileReport(kernel=id, profile=found)

    def check_memory(
        self, id: Annotated[str, Field(description="the id of a candidate, such as k1")]
    ) -> MemoryReport | KernelReport:
        """Find errors in memory accesses and name the source lines: accesses outside of bounds, races, wrong barriers,
        undefined behaviour, and memory that is read before it was written. Slow; meant for a candidate that gives wrong
        or changing results, or crashes. It is built first if it was not."""
        candidate = self._known("check_memory", id)
        report = self._stages.advance(candidate, "build")
        if report.build is None or not report.build.ok:
            return report
        self._on_stage(id, "memory")
        found = self._evaluator.check_memory(candidate.source, report.build, candidate.folder / "memory")
        return MemoryReport(kernel=id, memory=found)

    def run_experiment(
        self,
        source: Annotated[str, Field(description="a whole Python script that prints what you want to know")],
        seconds: Annotated[int, Field(description="time limit", ge=1, le=MOST_SCRIPT_SECONDS)] = 20,
    ) -> ExperimentReport:
        """Run a short script on the device, to answer a question about torch, the compiler or the hardware. It may call
        load_inline, before it uses the device. It runs like a candidate: no files, no network, no other programs. What
        it prints is shown to you and never counts as a result."""
        text = clean_source(source)
        if not text:
            raise _Refused(Refusal(tool="run_experiment", code="empty_source"))
        self._on_stage("a script", "run")
        folder = self._folder / "experiments"
        place = folder / f"{len(list(folder.glob('*'))) + 1:03d}"
        return ExperimentReport(experiment=self._evaluator.experiment(text, place, seconds=seconds))

    def judge(self, candidate: Candidate) -> KernelReport:
        """Take a candidate as far as it goes, without the model having asked."""
        return self._stages.advance(candidate, "time")

    def _known(self, tool: str, name: str) -> Candidate:
        candidate = self.candidates.get(name)
        if candidate is None:
            raise _Refused(Refusal(tool=tool, code="unknown_id", given=name, known=self.candidates.ids))
        return candidate

    def _candidate(self, tool: str, source: str | None, name: str | None) -> Candidate:
        # Some models fill an argument that they do not use with an empty text.
        name = name or None
        if (source is None) == (name is None):
            raise _Refused(Refusal(tool=tool, code="one_of_source_or_id", known=self.candidates.ids))
        if name is not None:
            return self._known(tool, name)
        text = clean_source(source or "")
        if not text:
            raise _Refused(Refusal(tool=tool, code="empty_source"))
        return self.candidates.add(text)[0]


__all__ = ["KernelReport", "Refusal", "Submitted", "ToolRecord", "Toolbox"]
