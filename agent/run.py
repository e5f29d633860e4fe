"""One run in progress: its conversation, candidates and budget, and the log that lets another process take it up."""

from __future__ import annotations

from pydantic import JsonValue, TypeAdapter

from agent.budget import Budget, Limits
from agent.config import RunConfig
from agent.interrupts import Interrupts
from agent.models import ModelClient, ToolSpec
from agent.progress import Progress
from problems import ProblemSpec
from prompts import render
from tools.candidates import CandidateState
from tools.evaluator import Evaluator
from tools.reports import ToolRecord, kernels_of
from tools.toolbox import Toolbox
from tools.types import ProblemFacts, Record
from transcripts import RestoredRun, RunFolder
from transcripts.events import (
    BestChanged,
    BudgetSpent,
    CandidateSeen,
    ErrorSeen,
    Event,
    FactsFound,
    MessagesAdded,
    Nudged,
    ReplyReceived,
    ToolCallStarted,
    ToolResult,
)
from transcripts.messages import AssistantMessage, Message, Reply, SystemMessage, ToolCall, ToolMessage, UserMessage
from transcripts.restore import add_usage

_JSON: TypeAdapter[dict[str, JsonValue]] = TypeAdapter(dict[str, JsonValue])


class Run:
    """What the loop works on. Everything that changes it is logged first, so the log is never behind."""

    def __init__(
        self,
        *,
        folder: RunFolder,
        state: RestoredRun,
        submitted: bool,
        spec: ProblemSpec,
        facts: ProblemFacts,
        client: ModelClient,
        evaluator: Evaluator,
        limits: Limits,
        progress: Progress,
        interrupts: Interrupts,
        person: bool,
    ) -> None:
        self.folder = folder
        self.config = RunConfig.model_validate(state.started.config)
        self.facts = facts
        self.client = client
        self.evaluator = evaluator
        self.progress = progress
        self.interrupts = interrupts
        self.person = person
        self.toolbox = Toolbox(evaluator, folder.path / "kernels", on_stage=progress.stage)
        self.toolbox_specs = [
            ToolSpec(tool.name, tool.description, tool.parameters()) for tool in self.toolbox.tools.values()
        ]
        self.messages: list[Message] = list(state.messages)
        self.pending: list[ToolCall] = [pending.call for pending in state.pending]
        self.nudges_in_a_row = state.nudges_in_a_row
        self.usage = state.usage
        self.budget = Budget(limits, turns=state.turns, seconds=state.seconds, cost=state.cost_usd)
        self.submitted = submitted
        self._last_reply = state.replies[-1] if state.replies else None
        self._best_logged = state.best
        if state.facts is None:
            self.log(FactsFound(facts=as_json(facts)))
        if not self.messages:
            self._begin(spec)

    @property
    def best(self) -> CandidateState | None:
        """The fastest correct candidate so far."""
        best = self.toolbox.candidates.best
        return best.state if best else None

    @property
    def last_reply(self) -> Reply | None:
        """The model's reply if it is the last thing that was said, so that nothing has answered it."""
        return self._last_reply if isinstance(self.messages[-1], AssistantMessage) else None

    @property
    def how_to_resume(self) -> str:
        return f"The run is kept in {self.folder.path}: the same command goes on after turn {self.budget.turns}."

    def log(self, event: Event) -> None:
        self.folder.append(event)

    def _begin(self, spec: ProblemSpec) -> None:
        config = self.config
        problem = render(
            "problem",
            spec=spec,
            facts=self.facts,
            size=config.size,
            rule=config.rule,
            precision=config.precision,
            require_own_kernels=config.require_own_kernels,
        )
        messages = (
            SystemMessage(text=render("system", device=config.device)),
            UserMessage(text=problem + "\n" + self.status()),
        )
        self.log(MessagesAdded(messages=messages))
        self.messages.extend(messages)

    def status(self) -> str:
        """The line that tells the model where the run stands."""
        budget = self.budget
        return render(
            "status",
            best=self.best,
            turns_left=budget.turns_left,
            minutes_left=budget.minutes_left,
            cost_left=budget.cost_left,
        )

    def add_reply(self, reply: Reply) -> None:
        self.log(ReplyReceived(turn=self.budget.turns + 1, reply=reply))
        self.messages.append(reply.message())
        self.pending = list(reply.tool_calls)
        self._last_reply = reply
        self.usage = add_usage(self.usage, reply.usage)
        if reply.tool_calls:
            self.nudges_in_a_row = 0
        self.progress.reply(reply)
        try:
            self.budget.spend_turn(reply.cost_usd, reply.usage.completion_tokens)
        finally:
            self._log_budget()

    def _log_budget(self) -> None:
        limits = self.budget.limits
        minutes = limits.max_minutes
        self.log(BudgetSpent(name="turns", spent=self.budget.turns, limit=limits.max_turns))
        self.log(BudgetSpent(name="seconds", spent=self.budget.seconds, limit=minutes and minutes * 60))
        if self.budget.cost is not None:
            self.log(BudgetSpent(name="usd", spent=self.budget.cost, limit=limits.max_cost))

    def start_call(self, call: ToolCall) -> None:
        self.log(ToolCallStarted(turn=self.budget.turns, call=call))
        self.progress.call(call.name)

    def add_result(self, call: ToolCall, record: ToolRecord, text: str, seconds: float) -> None:
        self.note_candidates(record)
        self.log(
            ToolResult(
                turn=self.budget.turns,
                call_id=call.id,
                name=call.name,
                record=as_json(record),
                text=text,
                seconds=seconds,
            )
        )
        self.messages.append(ToolMessage(call_id=call.id, name=call.name, text=text))
        self.pending.pop(0)

    def note_candidates(self, record: ToolRecord) -> None:
        """Log what a record says of candidates, and the leader if it changed; `solution.py` follows the leader."""
        self.progress.record(record)
        for candidate in filter(None, map(self.toolbox.candidates.get, kernels_of(record))):
            state = candidate.state
            self.log(
                CandidateSeen(
                    id=state.id,
                    source_path=(candidate.folder / "source.py").relative_to(self.folder.path).as_posix(),
                    parent=state.edited_from,
                    built=state.build.ok if state.build else None,
                    verdict=state.verdict.value if state.verdict else None,
                    time_us=state.timing.candidate_us.value if state.timing else None,
                    speedup=state.timing.speedup.value if state.timing else None,
                )
            )
        best = self.toolbox.candidates.best
        if best is None or best.state.timing is None:
            return
        timing = best.state.timing
        changed = BestChanged(id=best.id, time_us=timing.candidate_us.value, speedup=timing.speedup.value)
        if self._best_logged is None or (changed.id, changed.time_us) != (
            self._best_logged.id,
            self._best_logged.time_us,
        ):
            self.folder.write_solution(best.source)
            self.log(changed)
            self._best_logged = changed
            self.progress.best(best.state)

    def add_nudge(self, message: UserMessage, reason: str, in_a_row: int) -> None:
        # The message first: a process that dies between the two then counts one nudge too few, and forgets none.
        self.log(MessagesAdded(messages=(message,)))
        self.messages.append(message)
        self.log(Nudged(turn=self.budget.turns, reason=reason, in_a_row=in_a_row))
        self.nudges_in_a_row = in_a_row
        self.progress.nudge(reason, in_a_row)

    def note_error(self, source: str, error: Exception) -> None:
        self.log(ErrorSeen(source=source, kind=type(error).__name__, message=str(error)))


def as_json(record: Record) -> dict[str, JsonValue]:
    """A record as plain JSON, NaN and infinity as text."""
    return _JSON.validate_json(record.model_dump_json())
