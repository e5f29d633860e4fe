"""What a person sees while a run goes on: one line for each thing that happened, and on a terminal one live line."""

from __future__ import annotations

import re

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.spinner import Spinner
from rich.text import Text

from agent.budget import Budget
from prompts.formats import duration, number, speedup
from tools.candidates import CandidateState
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
from tools.types import EvaluationResult, Finding, ProblemFacts
from transcripts.messages import Reply

# What a model or a compiler wrote may hold escape sequences, which must not reach the terminal.
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_STYLES = {"error": "red", "warning": "yellow", "note": ""}
_STAGES = {
    "build": "building",
    "check": "checking",
    "time": "timing",
    "sweep": "sweeping",
    "run": "running",
    "profile": "profiling",
    "memory": "checking the memory of",
}


class Progress:
    """Plain lines where the output is no terminal; `quiet` says nothing at all (for `--json`)."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console = console
        self._quiet = quiet
        self._live: Live | None = None
        self._best = ""
        self._where = ""
        self._said = 0

    def __enter__(self) -> Progress:
        if self._console.is_terminal and not self._quiet:
            self._live = Live(console=self._console, refresh_per_second=8, transient=True)
            self._live.start()
        return self

    def __exit__(self, *_error: object) -> None:
        if self._live is not None:
            self._live.stop()
            self._live = None

    def line(self, text: str, style: str = "") -> None:
        """One line that stays."""
        if not self._quiet:
            self._console.print(Text(_CONTROL.sub("", text), style=style), soft_wrap=True)

    def _now(self, text: str) -> None:
        """What is being done at this moment; only a terminal shows it."""
        if self._live is not None:
            row = f"{self._where}[bold]{escape(text)}[/bold]"
            if self._best:
                row += f"  [green]{escape(self._best)}[/green]"
            self._live.update(Spinner("dots", text=Text.from_markup(row)))

    def opening(self, what: str) -> None:
        self.line(what)
        self._now("starting")

    def facts(self, facts: ProblemFacts) -> None:
        baselines = ", ".join(f"{name} {duration(time)}" for name, time in facts.baselines_us.items())
        self.line(
            f"On {facts.device.name}: reference {baselines or 'not timed'}; floor {duration(facts.floor_us)} "
            f"({facts.floor_limited_by})"
        )
        self.notes(facts.judge_notes)
        if not facts.judgeable:
            self.line("Verdicts on this problem say nothing, for the reasons above.", "bold red")

    def notes(self, found: list[Finding]) -> None:
        """What was found about the problem itself."""
        for note in found:
            self.line(f"  {note.severity} {note.code}: {note.summary}", _STYLES[note.severity])

    def asking(self, budget: Budget) -> None:
        self._where = f"turn {budget.turns + 1}/{budget.limits.max_turns} "
        self._said = 0
        self._now("the model is writing")

    def text(self, piece: str) -> None:
        self._said += len(piece)
        self._now(f"the model is writing ({self._said} characters)")

    def waiting(self, reason: str, seconds: float) -> None:
        self.line(f"  {reason}; the next attempt is in {seconds:.0f} s", "yellow")

    def reply(self, reply: Reply) -> None:
        tokens = reply.usage.completion_tokens
        cost = "" if reply.cost_usd is None else f", {number(reply.cost_usd, 2)} USD"
        said = " ".join(reply.text.split())
        detail = f" ({reply.seconds:.1f} s{'' if tokens is None else f', {tokens} tokens'}{cost})"
        self.line(f"{self._where.strip()}: {said[:100] or 'no words'}{'…' if len(said) > 100 else ''}{detail}", "bold")

    def call(self, name: str) -> None:
        self._now(name)

    def stage(self, kernel: str, stage: str) -> None:
        self._now(f"{_STAGES.get(stage, stage)} {kernel}")

    def record(self, record: ToolRecord) -> None:
        if isinstance(record, Submitted):
            self.line(f"  submitted {record.kernel}")
        elif isinstance(record, Refusal):
            self.line(f"  {record.tool}: not carried out ({record.code.replace('_', ' ')})", "yellow")
        elif isinstance(record, ExperimentReport):
            self.line(f"  experiment: {record.experiment.ended.replace('_', ' ')}")
        elif isinstance(record, ProfileReport):
            limit = record.profile.limit
            self.line(f"  {record.kernel}: profiled" + (f" ({limit.code.replace('_', ' ')})" if limit else ""))
        elif isinstance(record, MemoryReport):
            self.line(f"  {record.kernel}: memory checked, {len(record.memory.findings)} findings")
        elif isinstance(record, TuneReport):
            self.line(f"  {record.kernel}: {len(record.variants)} variants tried")
            if record.best is not None:
                self.line(*_verdict_line(record.best))
        else:
            self.line(*_verdict_line(record))

    def best(self, state: CandidateState) -> None:
        if state.timing is not None:
            self._best = f"fastest: {state.id} {speedup(state.timing.speedup)}"

    def nudge(self, reason: str, in_a_row: int) -> None:
        what = {"empty": "an empty reply", "cut_off": "the reply was cut off"}.get(reason, "no tool call")
        self.line(f"  {what}; the model was told so ({in_a_row} in a row)", "yellow")

    def interrupted(self) -> None:
        self.line("Ctrl-C: ends after the call in flight; once more stops at once (the run can be resumed).", "yellow")

    def judging(self, kernel: str) -> None:
        self.line(f"Judging {kernel}, which compiled and was never judged")

    def confirming(self, kernel: str) -> None:
        self._where = ""
        self.line(f"Confirming {kernel}: fresh processes, fresh seeds, stock build")
        self._now(f"confirming {kernel}")

    def confirmed(self, kernel: str, record: EvaluationResult) -> None:
        if record.timing is not None:
            self.line(f"  {kernel}: {record.verdict.value}, {speedup(record.timing.speedup)}", "green")
        else:
            self.line(f"  {kernel}: {record.verdict.value}", "red" if record.correctness is None else "")


def _verdict_line(report: KernelReport) -> tuple[str, str]:
    """The line and its style for one candidate."""
    if report.timing is not None:
        mark = ", the fastest so far" if report.leads else ""
        time_ = duration(report.timing.candidate_us.value)
        return f"  {report.kernel}: {report.verdict}, {time_}, {speedup(report.timing.speedup)}{mark}", "green"
    if report.verdict is None:
        return f"  {report.kernel}: {'built' if report.build else 'saved'}", ""
    if report.correctness is not None and report.correctness.findings:
        why = report.correctness.findings[0].summary
    elif report.build is not None and report.build.diagnostics:
        why = report.build.diagnostics[0].message
    elif report.build is not None and report.build.findings:
        why = report.build.findings[0].summary
    else:
        why = ""
    return f"  {report.kernel}: {report.verdict.value}{f' ({why})' if why else ''}", "red"
