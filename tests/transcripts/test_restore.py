"""The state of a run rebuilt from its events, at each place where a process may have died."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from transcripts import RunFolder, TranscriptError, restore
from transcripts.events import (
    BestChanged,
    CandidateSeen,
    Confirmed,
    Event,
    FactsFound,
    MessagesAdded,
    Nudged,
    ReplyReceived,
    Resumed,
    RunFinished,
    RunStarted,
    ToolCallStarted,
    ToolResult,
)
from transcripts.messages import Reply, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage
from transcripts.restore import restore_events

T0 = datetime(2026, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return T0 + timedelta(seconds=seconds)


A = ToolCall(id="a", name="compile_kernel", arguments="{}")
B = ToolCall(id="b", name="time_kernel", arguments="{}")
TWO_CALLS = Reply(text="two", tool_calls=(A, B), usage=Usage(prompt_tokens=10, completion_tokens=2), cost_usd=0.25)
WORDS = Reply(text="only words", usage=Usage(completion_tokens=3, cached_tokens=1))

EVENTS: list[Event] = [
    RunStarted(problem="p", model="m", config={"x": 1}, time=at(0)),
    FactsFound(facts={"floor_us": 1.5}, time=at(1)),
    MessagesAdded(messages=(SystemMessage(text="s"), UserMessage(text="u")), time=at(1)),
    ReplyReceived(turn=1, reply=WORDS, time=at(5)),
    MessagesAdded(messages=(UserMessage(text="call a tool"),), time=at(5)),
    Nudged(turn=1, reason="no_tool_call", in_a_row=1, time=at(5)),
    ReplyReceived(turn=2, reply=TWO_CALLS, time=at(10)),
    ToolCallStarted(turn=2, call=A, time=at(10)),
    CandidateSeen(id="k1", source_path="kernels/k001/source.py", time=at(11)),
    CandidateSeen(id="k1", source_path="kernels/k001/source.py", verdict="correct", time_us=2.0, time=at(12)),
    BestChanged(id="k1", time_us=2.0, speedup=1.5, time=at(12)),
    ToolResult(turn=2, call_id="a", name=A.name, record={"kind": "kernel"}, text="built", seconds=2.0, time=at(12)),
    ToolCallStarted(turn=2, call=B, time=at(12)),
]


def log(tmp_path: Path, events: Sequence[Event]) -> Path:
    first, *rest = events
    assert isinstance(first, RunStarted)
    with RunFolder.create(tmp_path, first) as run:
        for event in rest:
            run.append(event)
    return run.path


def test_killed_in_the_middle_of_a_call(tmp_path: Path) -> None:
    state = restore(log(tmp_path, EVENTS))
    assert state.messages == [
        SystemMessage(text="s"),
        UserMessage(text="u"),
        WORDS.message(),
        UserMessage(text="call a tool"),
        TWO_CALLS.message(),
        ToolMessage(call_id="a", name="compile_kernel", text="built"),
    ]
    assert [(pending.call, pending.starts) for pending in state.pending] == [(B, 1)]
    assert state.turns == 2
    assert state.usage == Usage(prompt_tokens=10, completion_tokens=5, cached_tokens=1)
    assert state.cost_usd == 0.25
    assert state.seconds == 12
    assert state.nudges_in_a_row == 0
    assert state.facts == {"floor_us": 1.5}
    assert state.candidates["k1"].verdict == "correct"
    assert state.best is not None
    assert state.best.id == "k1"
    assert state.finished is None


@pytest.mark.parametrize("length", range(1, len(EVENTS) + 1))
def test_any_beginning_can_be_restored(length: int) -> None:
    state = restore_events(EVENTS[:length])
    replies = [event for event in EVENTS[:length] if isinstance(event, ReplyReceived)]
    assert state.turns == len(replies)
    answered = sum(isinstance(event, ToolResult) for event in EVENTS[:length])
    asked = len(replies[-1].reply.tool_calls) if replies else 0
    assert len(state.pending) == asked - answered


def test_gap_between_two_processes_is_not_spent_and_a_second_start_is_seen() -> None:
    later = [Resumed(time=at(1000)), ToolCallStarted(turn=2, call=B, time=at(1003))]
    state = restore_events([*EVENTS, *later])
    assert state.seconds == 15
    assert [(pending.call.id, pending.starts) for pending in state.pending] == [("b", 2)]


def test_nudges_count_until_a_tool_is_called() -> None:
    assert restore_events(EVENTS[:6]).nudges_in_a_row == 1
    assert restore_events(EVENTS[:7]).nudges_in_a_row == 0


def test_same_call_id_in_a_later_turn_is_another_call() -> None:
    again = ReplyReceived(turn=3, reply=Reply(tool_calls=(A,)), time=at(20))
    result = ToolResult(turn=2, call_id="b", name=B.name, record={}, text="timed", seconds=1, time=at(19))
    state = restore_events([*EVENTS, result, again])
    assert [pending.call.id for pending in state.pending] == ["a"]


def test_an_end_holds_until_the_run_is_taken_up_again() -> None:
    end = [
        Confirmed(id="k1", confirmed=True, record={}, time=at(20)),
        RunFinished(reason="interrupted", result={"solved": True}, time=at(21)),
    ]
    state = restore_events([*EVENTS, *end])
    assert state.finished == end[1]
    assert state.confirmation == end[0]
    assert restore_events([*EVENTS, *end, Resumed(time=at(30))]).finished is None


def test_cost_is_unknown_if_no_reply_had_one() -> None:
    assert restore_events(EVENTS[:5]).cost_usd is None


def test_what_is_no_transcript(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="not 'run_started'"):
        restore_events(EVENTS[1:])
    (tmp_path / "events.jsonl").touch()
    with pytest.raises(TranscriptError, match="holds no event"):
        restore(tmp_path)
