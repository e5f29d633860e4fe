"""The state of a run, rebuilt from its events, so that the loop can go on where a killed process stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from transcripts.events import (
    BestChanged,
    CandidateSeen,
    Confirmed,
    Event,
    FactsFound,
    JsonObject,
    MessagesAdded,
    Nudged,
    ReplyReceived,
    Resumed,
    RunFinished,
    RunStarted,
    ToolCallStarted,
    ToolResult,
)
from transcripts.messages import Message, Reply, ToolCall, ToolMessage, Usage
from transcripts.reading import TranscriptError, read_events


@dataclass(frozen=True)
class PendingCall:
    """A tool call of the last reply that has no result. `starts` counts how often it was begun: more than once means
    that it went down with the process before."""

    call: ToolCall
    starts: int


@dataclass
class RestoredRun:
    """What the events say. The next step of the loop follows from it: run `pending`, or else ask the model again.

    `seconds` is the time that processes spent on the run, without the gaps between them; `cost_usd` is None if no
    reply had a known cost; `usage` sums what was reported.
    """

    started: RunStarted
    facts: JsonObject | None = None
    messages: list[Message] = field(default_factory=list[Message])
    replies: list[Reply] = field(default_factory=list[Reply])
    pending: list[PendingCall] = field(default_factory=list[PendingCall])
    candidates: dict[str, CandidateSeen] = field(default_factory=dict[str, CandidateSeen])
    best: BestChanged | None = None
    nudges_in_a_row: int = 0
    usage: Usage = field(default_factory=Usage)
    cost_usd: float | None = None
    seconds: float = 0.0
    confirmation: Confirmed | None = None
    finished: RunFinished | None = None

    @property
    def turns(self) -> int:
        """How many replies were got."""
        return len(self.replies)


def restore(run: Path) -> RestoredRun:
    """Rebuild the state of the run in folder `run`. Raises TranscriptError if it cannot be read."""
    events = read_events(run)
    if not events:
        raise TranscriptError(f"{run} holds no event: it was stopped before it began. Delete it and start again.")
    return restore_events(events)


def restore_events(events: Sequence[Event]) -> RestoredRun:
    """Rebuild the state from events, the first of which is a `RunStarted`; raises TranscriptError if it is not."""
    first = events[0]
    if not isinstance(first, RunStarted):
        raise TranscriptError(f"The first event is {first.event!r}, not 'run_started': this is no whole transcript.")
    state = RestoredRun(started=first)
    previous = first.time
    for event in events[1:]:
        if not isinstance(event, Resumed):
            state.seconds += max((event.time - previous).total_seconds(), 0.0)
        previous = event.time
        _apply(state, event)
    return state


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum of two counts, field by field; what one of them does not know counts as nothing."""

    def plus(a: int | None, b: int | None) -> int | None:
        return b if a is None else a if b is None else a + b

    return Usage(
        prompt_tokens=plus(one.prompt_tokens, other.prompt_tokens),
        completion_tokens=plus(one.completion_tokens, other.completion_tokens),
        cached_tokens=plus(one.cached_tokens, other.cached_tokens),
        reasoning_tokens=plus(one.reasoning_tokens, other.reasoning_tokens),
    )


def _apply(state: RestoredRun, event: Event) -> None:
    # Whatever comes after an end means that the run was taken up again.
    state.finished = None
    match event:
        case FactsFound():
            state.facts = event.facts
        case MessagesAdded():
            state.messages.extend(event.messages)
        case ReplyReceived():
            _add_reply(state, event.reply)
        case ToolCallStarted():
            state.pending = [
                PendingCall(p.call, p.starts + 1) if p.call.id == event.call.id else p for p in state.pending
            ]
        case ToolResult():
            state.pending = [p for p in state.pending if p.call.id != event.call_id]
            state.messages.append(ToolMessage(call_id=event.call_id, name=event.name, text=event.text))
        case CandidateSeen():
            state.candidates[event.id] = event
        case BestChanged():
            state.best = event
        case Nudged():
            state.nudges_in_a_row = event.in_a_row
        case Confirmed():
            state.confirmation = event
        case RunFinished():
            state.finished = event
        case _:
            pass


def _add_reply(state: RestoredRun, reply: Reply) -> None:
    state.replies.append(reply)
    state.messages.append(reply.message())
    state.pending = [PendingCall(call, 0) for call in reply.tool_calls]
    state.usage = add_usage(state.usage, reply.usage)
    if reply.tool_calls:
        state.nudges_in_a_row = 0
    if reply.cost_usd is not None:
        state.cost_usd = (state.cost_usd or 0.0) + reply.cost_usd
