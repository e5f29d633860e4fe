"""What the model can call. Each tool is one method: its signature and docstring are the schema the model sees."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from pydantic import Field

from tools.candidates import Candidate, Candidates, clean_source
from tools.edits import Edit, EditMismatch, apply_edits
from tools.registry import ArgumentsError, Tool, as_tool
from tools.reports import ExperimentReport, KernelReport, Refusal, Submitted, ToolRecord, TuneReport
from tools.tuning import Value
from tools.tuning.tuner import CannotTune, Swept, confirmed, planned, sweep
from tools.types import BuildResult, CorrectnessResult, TimingResult, Verdict

if TYPE_CHECKING:
    from tools.evaluator import Evaluator

Source = Annotated[str | None, Field(description="the whole Python file that defines ModelNew")]
KernelId = Annotated[str | None, Field(description="the id of a source sent before, such as k1")]
Result = TypeVar("Result")
Choices = Annotated[list[Value], Field(min_length=1, max_length=32)]
MOST_VARIANTS = 32
MOST_SCRIPT_SECONDS = 60


class _Refused(Exception):  # noqa: N818 - an answer to the model, not an error
    def __init__(self, refusal: Refusal) -> None:
        super().__init__(refusal.code)
        self.refusal = refusal


class _JudgeFailed(Exception):  # noqa: N818 - becomes a report to the model
    pass


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
        self._judge_failures = 0
        self.tools: dict[str, Tool] = {
            tool.name: tool
            for tool in map(
                as_tool,
                (
                    self.evaluate_kernel,
                    self.edit_kernel,
                    self.tune_kernel,
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
        return self._advance(self._candidate("evaluate_kernel", source, id), "time")

    def compile_kernel(self, source: Source = None, id: KernelId = None) -> KernelReport:
        """Only build a candidate: compiler diagnostics, and registers, shared memory and spills of each kernel. Give
        either a source or an id."""
        return self._advance(self._candidate("compile_kernel", source, id), "build")

    def run_correctness(self, source: Source = None, id: KernelId = None) -> KernelReport:
        """Check a candidate's outputs against an fp64 oracle on fresh inputs, building it first if needed. Give either
        a source or an id."""
        return self._advance(self._candidate("run_correctness", source, id), "check")

    def time_kernel(self, id: Annotated[str, Field(description="the id of a candidate, such as k1")]) -> KernelReport:
        """Time a correct candidate against the reference, again if it was timed before; it is checked first if it
        was not."""
        candidate = self._known("time_kernel", id)
        if candidate.state.correct and candidate.state.timing is not None:
            candidate = self.candidates.update(candidate.id, timing=None)
        return self._advance(candidate, "time")

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
        return self._advance(candidate, "time" if evaluate else "save")

    def submit(
        self, id: Annotated[str, Field(description="the id of the candidate to submit, such as k1")]
    ) -> Submitted | Refusal:
        """End the run with this candidate when you expect nothing faster any more. It must be correct; it is checked
        and timed first if it was not. The fastest correct candidate of the run wins, whichever is submitted."""
        report = self._advance(self._known("submit", id), "time")
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
            swept = self._twice(lambda: sweep(self._evaluator, plan, parent.folder / "variants", stage))
        except _JudgeFailed as failed:
            return plan.report(parent.id, Swept(judge_failure=str(failed)), None)

        def judge(variant: str) -> KernelReport:
            return self._advance(self.candidates.add(variant, edited_from=parent.id)[0], "time")

        return plan.report(parent.id, *confirmed(swept, judge))

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
        return self._advance(candidate, "time")

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

    def _advance(self, candidate: Candidate, until: Literal["save", "build", "check", "time"]) -> KernelReport:
        """Run the stages up to `until` that the candidate has not been through; what is known is not run again."""
        ran, judge_failure = False, None
        if until != "save":
            if not _usable(candidate.state.build):
                candidate, ran = self._build(candidate), True
            if until != "build" and candidate.state.build is not None and candidate.state.build.ok:
                try:
                    candidate, judged = self._twice(partial(self._judge, candidate, timed=until == "time"))
                    ran = ran or judged
                except _JudgeFailed as failed:
                    ran, judge_failure = True, str(failed)
        best = self.candidates.best
        state = candidate.state
        return KernelReport(
            kernel=candidate.id,
            asked=until,
            edited_from=state.edited_from,
            repeated=until != "save" and not ran,
            leads=best is not None and best.id == candidate.id,
            verdict=Verdict.JUDGE_ERROR if judge_failure is not None else state.verdict,
            build=state.build,
            correctness=state.correctness,
            timing=state.timing,
            judge_failure=judge_failure,
        )

    def _build(self, candidate: Candidate) -> Candidate:
        self._on_stage(candidate.id, "build")
        return self.candidates.update(candidate.id, build=self._evaluator.build(candidate.source, candidate.folder))

    def _twice(self, work: Callable[[], Result]) -> Result:
        """Have something judged; where the judge itself breaks down, once more with the new one that takes its place.

        What brings it down twice is set aside, so that it can't end the run. If the next one does too, it is no matter
        of the candidate, and the EvaluatorError passes.
        """
        from tools.evaluator import EvaluatorError

        try:
            try:
                judged = work()
            except EvaluatorError:
                judged = work()
        except EvaluatorError as error:
            self._judge_failures += 1
            if self._judge_failures > 1:
                raise
            raise _JudgeFailed(str(error)[-4000:]) from error
        self._judge_failures = 0
        return judged

    def _judge(self, candidate: Candidate, *, timed: bool) -> tuple[Candidate, bool]:
        ran = False
        build = candidate.state.build
        assert build is not None
        if candidate.state.verdict in (None, Verdict.JUDGE_ERROR):
            self._on_stage(candidate.id, "check")
            checked = self._evaluator.check(candidate.source, build)
            candidate, ran = self.candidates.update(candidate.id, correctness=checked), True
        if timed and candidate.state.correct and candidate.state.timing is None:
            self._on_stage(candidate.id, "time")
            timed_or_not = self._evaluator.time(candidate.source, build)
            known = (
                {"timing": timed_or_not}
                if isinstance(timed_or_not, TimingResult)
                # A timed call unmasked it: what the checks before had measured stays beside the new verdict.
                else {"correctness": _with_trials_of(candidate.state.correctness, timed_or_not)}
            )
            candidate, ran = self.candidates.update(candidate.id, **known), True
        return candidate, ran


def _with_trials_of(before: CorrectnessResult | None, after: CorrectnessResult) -> CorrectnessResult:
    return after.model_copy(update={"trials": before.trials, "precision": before.precision}) if before else after


def _usable(build: BuildResult | None) -> bool:
    """False when there is no build, or when one of its libraries is gone since (a cleared cache, another machine)."""
    return build is not None and all(Path(module.library).exists() for module in build.modules)


__all__ = ["KernelReport", "Refusal", "Submitted", "ToolRecord", "Toolbox"]
