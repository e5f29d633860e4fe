# ruff: noqa: N818  (the names say what happened; `except RateLimited` needs no suffix)
"""The one protocol that every model client follows, and the typed ways in which a request can end badly."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from pydantic import JsonValue

from transcripts.messages import Message, Reply


@dataclass(frozen=True)
class ToolSpec:
    """A tool as the model sees it; `parameters` is the JSON schema of its arguments (an object schema)."""

    name: str
    description: str
    parameters: dict[str, JsonValue]


class ModelClient(Protocol):
    """A source of replies."""

    @property
    def model(self) -> str:
        """The name for logs and headers, such as `gpt-5.2`, `recorded:demo` or `mailbox`."""
        ...

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Reply:
        """Ask for the next reply to the whole conversation.

        `on_text` gets the text piece by piece as it arrives; after a cut stream it starts anew with the first piece
        of the next attempt. Where a reply is awaited without end, `check` is called again and again meanwhile, and
        what it raises ends the wait. Raises a `ModelError` and nothing else (but for that and KeyboardInterrupt).
        """
        ...

    def close(self) -> None:
        """Let go of connections. Safe to call twice."""
        ...


class ModelError(Exception):
    """No reply was got. The message says why and what to do next."""


class NoApiKey(ModelError):
    """The endpoint wants a key and there is none."""


class Unauthorized(ModelError):
    """401 or 403: the key is wrong, or not allowed to use this model."""


class ModelNotFound(ModelError):
    """404: no such model, or no such endpoint."""


class ContextTooLong(ModelError):
    """400: the conversation no longer fits into the model's context."""


class ToolsNotSupported(ModelError):
    """400: the model or the server takes no tool calls."""


class BadRequest(ModelError):
    """Any other refusal of the request as such."""


class RateLimited(ModelError):
    """429 for longer than the patience allows, or a quota that waiting does not refill."""


class ServerFailed(ModelError):
    """5xx, or an answer that is no valid reply, for longer than the patience allows."""


class ConnectionFailed(ModelError):
    """Refused, unresolved, timed out or cut connections for longer than the patience allows."""


class RecordingExhausted(ModelError):
    """A recorded transcript has no further reply."""


class ReplyAwaited(ModelError):
    """The mailbox has no reply yet and was told not to wait. `prompt` and `reply` are the two files."""

    exit_code = 75

    def __init__(self, prompt: Path, reply: Path) -> None:
        super().__init__(f"A reply is awaited. Read {prompt}, write {reply}, and run the same command again.")
        self.prompt = prompt
        self.reply = reply
