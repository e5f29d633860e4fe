"""Replies from a transcript, word for word and in order, while every tool runs live.

Which reply is next follows from the conversation itself (how many replies it holds already), so a run that was killed
goes on in the right place.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.models.base import RecordingExhausted, ToolSpec
from transcripts import find_example, read_events, read_header
from transcripts.events import ReplyReceived
from transcripts.messages import AssistantMessage, Message, Reply, Usage


class RecordedClient:
    """A `ModelClient` that repeats the model's words of `recording`: a run folder, or the name of a bundled one."""

    def __init__(self, recording: str | Path) -> None:
        """Raises transcripts.TranscriptError if there is no such recording, or it is damaged."""
        self.path = Path(recording) if Path(recording).is_dir() else find_example(str(recording))
        self.model = f"recorded:{self.path.name}"
        self.problem = read_header(self.path).problem
        self._replies = [event.reply for event in read_events(self.path) if isinstance(event, ReplyReceived)]

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Reply:
        """See `ModelClient.reply`. Calls keep their ids; nothing was spent, so nothing is counted.

        Raises RecordingExhausted after the last one.
        """
        started = time.monotonic()
        done = sum(isinstance(message, AssistantMessage) for message in messages)
        if done >= len(self._replies):
            raise RecordingExhausted(
                f"{self.path} holds {len(self._replies)} replies, and all were used. Go on with a model "
                "(`--model NAME`) or by hand (`--mailbox DIR`)."
            )
        recorded = self._replies[done]
        if on_text is not None and recorded.text:
            on_text(recorded.text)
        seconds = time.monotonic() - started
        return recorded.model_copy(update={"usage": Usage(), "cost_usd": None, "seconds": seconds, "retries": 0})

    def close(self) -> None:
        """Nothing is held."""
