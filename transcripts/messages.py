"""What is said between the loop and the model, in the form in which it is stored.

These records live here, and not beside the model clients, because a transcript must be readable by something that has
no model client at all.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field


class Stored(BaseModel):
    """Base of all that goes into a transcript: immutable, and closed to fields it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(Stored):
    """One call as the model wrote it. `arguments` is the raw text, which need not be valid JSON."""

    id: str
    name: str
    arguments: str


class SystemMessage(Stored):
    role: Literal["system"] = "system"
    text: str


class UserMessage(Stored):
    role: Literal["user"] = "user"
    text: str


class AssistantMessage(Stored):
    """What the model said. `reasoning_key` is the provider's own name for its reasoning text: some providers insist on
    getting it back under that name in the turns that follow a tool call."""

    role: Literal["assistant"] = "assistant"
    text: str = ""
    reasoning: str | None = None
    reasoning_key: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()


class ToolMessage(Stored):
    """The text that answers one tool call."""

    role: Literal["tool"] = "tool"
    call_id: str
    name: str
    text: str


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


class Usage(Stored):
    """Token counts of one reply; None where the provider did not say. `cached_tokens` are part of `prompt_tokens`,
    `reasoning_tokens` part of `completion_tokens`."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


FinishReason = Literal["stop", "tool_calls", "length", "content_filter", "other"]


class Reply(Stored):
    """One whole reply of a model. `seconds` is the wall time with all retries and waits in it."""

    text: str = ""
    reasoning: str | None = None
    reasoning_key: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason = "stop"
    model: str = ""
    usage: Usage = Usage()
    cost_usd: float | None = None
    seconds: float = 0.0
    retries: int = 0

    @property
    def empty(self) -> bool:
        """True if there is neither text nor a tool call to act upon."""
        return not self.text.strip() and not self.tool_calls

    def message(self) -> AssistantMessage:
        """The reply as the next message of the conversation."""
        return AssistantMessage(
            text=self.text,
            reasoning=self.reasoning,
            reasoning_key=self.reasoning_key,
            tool_calls=self.tool_calls,
        )
