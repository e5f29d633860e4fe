"""The event schema: one JSON object a line in `events.jsonl`, told apart by the field `event`.

The conversation is not stored twice: it is the concatenation, in the order of the file, of `messages_added.messages`,
`reply.reply` (as an assistant message) and `tool_result.text` (as a tool message). `transcripts.restore` does that.
Results of tools are plain JSON objects here, since this package knows nothing of the tools: the field `kind` in each
names the record (`BuildResult`, `EvaluationResult`, …).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from pydantic import Field, JsonValue, TypeAdapter

from transcripts.messages import Message, Reply, Stored, ToolCall

SCHEMA_VERSION = 1

JsonObject = dict[str, JsonValue]


def _now() -> datetime:
    return datetime.now(UTC)


class _Event(Stored):
    schema_version: Literal[1] = SCHEMA_VERSION
    time: datetime = Field(default_factory=_now, description="UTC")


class RunStarted(_Event):
    """The first event of every run. `config` is the resolved configuration: two runs with equal `config` are the same
    command. `device` and `sandbox` are None while nothing has measured them."""

    event: Literal["run_started"] = "run_started"
    problem: str
    model: str
    config: JsonObject
    versions: dict[str, str] = Field(default_factory=dict)
    device: JsonObject | None = None
    sandbox: str | None = None


class FactsFound(_Event):
    """What the evaluator said of the problem on this device (a `ProblemFacts`)."""

    event: Literal["facts"] = "facts"
    facts: JsonObject


class MessagesAdded(_Event):
    """Messages that the loop itself put into the conversation: system text, problem, budget lines, nudges."""

    event: Literal["messages_added"] = "messages_added"
    messages: tuple[Message, ...]


class ReplyReceived(_Event):
    """One reply of the model; `turn` counts from 1."""

    event: Literal["reply"] = "reply"
    turn: int
    reply: Reply


class ToolCallStarted(_Event):
    event: Literal["tool_call"] = "tool_call"
    turn: int
    call: ToolCall


class ToolResult(_Event):
    """The end of a tool call: the record for programs (with its `kind`), the text for the model."""

    event: Literal["tool_result"] = "tool_result"
    turn: int
    call_id: str
    name: str
    record: JsonObject
    text: str
    seconds: float


class CandidateSeen(_Event):
    """A candidate as it stands now. It is written again whenever more is known; the last one of an id holds.

    `source_path` is relative to the run folder. `verdict` is None until it was built or judged; `built` is None until
    a build was tried. Times in microseconds.
    """

    event: Literal["candidate"] = "candidate"
    id: str
    source_path: str
    parent: str | None = None
    built: bool | None = None
    verdict: str | None = None
    time_us: float | None = None
    speedup: float | None = None


class BestChanged(_Event):
    """`id` is now the fastest correct candidate."""

    event: Literal["best_changed"] = "best_changed"
    id: str
    time_us: float
    speedup: float


class BudgetSpent(_Event):
    """Where a limit stands: `name` such as 'turns', 'seconds', 'tokens', 'usd'. `limit` None means unlimited."""

    event: Literal["budget"] = "budget"
    name: str
    spent: float
    limit: float | None = None


class Nudged(_Event):
    """The model was told that its reply could not be acted upon. `in_a_row` counts from 1."""

    event: Literal["nudge"] = "nudge"
    turn: int
    reason: str
    in_a_row: int


class ErrorSeen(_Event):
    """Something outside the model's control went wrong. `source` is where: 'model', 'evaluator', 'disk', …"""

    event: Literal["error"] = "error"
    source: str
    kind: str
    message: str


class Resumed(_Event):
    """The run was taken up again by a new process; the time since the event before does not count as spent."""

    event: Literal["resumed"] = "resumed"


class Confirmed(_Event):
    """The winner was judged again in fresh processes, with fresh seeds and a stock build."""

    event: Literal["confirmation"] = "confirmation"
    id: str
    confirmed: bool
    record: JsonObject


class RunFinished(_Event):
    """The last event of a finished run. `reason` such as 'submitted', 'turns', 'budget', 'interrupted', 'no_tool_call';
    `result` is what `result.json` holds."""

    event: Literal["run_finished"] = "run_finished"
    reason: str
    result: JsonObject


Event = Annotated[
    RunStarted
    | FactsFound
    | MessagesAdded
    | ReplyReceived
    | ToolCallStarted
    | ToolResult
    | CandidateSeen
    | BestChanged
    | BudgetSpent
    | Nudged
    | ErrorSeen
    | Resumed
    | Confirmed
    | RunFinished,
    Field(discriminator="event"),
]

EVENT: TypeAdapter[Event] = TypeAdapter(Event)
