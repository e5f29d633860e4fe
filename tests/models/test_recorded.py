"""Recorded replies: the model's words, in order, from wherever the conversation stands."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.models import RecordingExhausted
from agent.models.recorded import RecordedClient
from transcripts import RunFolder, TranscriptError
from transcripts.events import MessagesAdded, ReplyReceived, RunStarted
from transcripts.messages import Message, Reply, SystemMessage, ToolCall, ToolMessage, Usage, UserMessage

FIRST = Reply(
    text="I try k1.",
    tool_calls=(ToolCall(id="a", name="time_kernel", arguments='{"id": "k1"'),),
    finish_reason="tool_calls",
    model="some-model",
    usage=Usage(prompt_tokens=5, completion_tokens=6),
    cost_usd=0.5,
    seconds=9.0,
    retries=2,
)
SECOND = Reply(text="Done.", model="some-model")
START: list[Message] = [SystemMessage(text="s"), UserMessage(text="u")]


@pytest.fixture
def recording(tmp_path: Path) -> Path:
    with RunFolder.create(tmp_path, RunStarted(problem="p", model="some-model", config={})) as run:
        run.append(MessagesAdded(messages=tuple(START)))
        run.append(ReplyReceived(turn=1, reply=FIRST))
        run.append(ReplyReceived(turn=2, reply=SECOND))
    return run.path


def test_words_and_calls_are_repeated_and_nothing_is_counted(recording: Path) -> None:
    client = RecordedClient(recording)
    pieces: list[str] = []
    reply = client.reply(START, [], on_text=pieces.append)
    assert pieces == ["I try k1."]
    assert reply.text == FIRST.text
    assert reply.tool_calls == FIRST.tool_calls
    assert reply.model == "some-model"
    assert (reply.usage, reply.cost_usd, reply.retries) == (Usage(), None, 0)
    assert reply.seconds < 9.0


def test_position_follows_from_the_conversation(recording: Path) -> None:
    talk = [*START, FIRST.message(), ToolMessage(call_id="a", name="time_kernel", text="live")]
    # A new client, as after a kill: it goes on with the second reply.
    assert RecordedClient(recording).reply(talk, []).text == "Done."
    with pytest.raises(RecordingExhausted, match=r"2 replies.*--model NAME"):
        RecordedClient(recording).reply([*talk, SECOND.message(), UserMessage(text="nudge")], [])


def test_unknown_recording_names_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TranscriptError, match="no bundled transcript 'nonesuch'"):
        RecordedClient("nonesuch")
    with pytest.raises(TranscriptError, match="no run folder"):
        RecordedClient(tmp_path)
