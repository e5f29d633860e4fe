"""One whole reply out of the pieces of a stream, or out of one JSON answer of a server that does not stream.

What arrives is checked here once, against models that know only the fields that are used, since every provider's
dialect differs: indices that are missing or always 0, ids that never come, names that come with every piece.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, cast

from pydantic import BaseModel, BeforeValidator, Field, JsonValue

from transcripts.messages import FinishReason, Reply, ToolCall, Usage

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "content_filter",
}


def _as_text(value: object) -> object:
    return value if isinstance(value, str) or value is None else json.dumps(value)


def _as_prose(value: object) -> object:
    """Some servers send the content as a list of typed parts; only text parts are words to the reader."""
    if not isinstance(value, list):
        return value
    parts = [cast("dict[str, object]", part) for part in cast("list[object]", value) if isinstance(part, dict)]
    return "".join(str(part.get("text") or "") for part in parts if part.get("type") == "text")


_Arguments = Annotated[str, BeforeValidator(_as_text)]
_Prose = Annotated[str, BeforeValidator(_as_prose)]


def _join(pieces: list[str]) -> str:
    """A surrogate pair may come in halves, one in each of two pieces: whole pairs are put together, and what is left
    alone is replaced, since no file and no request could hold it."""
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


class _Function(BaseModel):
    name: str | None = None
    arguments: _Arguments | None = None


class _CallPiece(BaseModel):
    index: int | None = None
    id: str | None = None
    function: _Function = _Function()


class _Delta(BaseModel):
    content: _Prose | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    tool_calls: list[_CallPiece] | None = None


class _Choice(BaseModel):
    delta: _Delta | None = None
    message: _Delta | None = None
    finish_reason: str | None = None


class _Details(BaseModel):
    cached_tokens: int | None = None
    reasoning_tokens: int | None = None


class _Counts(BaseModel):
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None
    cost: float | None = Field(default=None, description="USD, where the provider bills per request")


class Piece(BaseModel):
    """One chunk of a stream, or one whole answer. Fields that nobody reads here are dropped."""

    choices: list[_Choice] | None = None
    usage: _Counts | None = None
    model: str | None = None
    error: JsonValue = None


@dataclass
class _Call:
    id: str
    name: str
    arguments: list[str]


@dataclass
class Assembly:
    """Takes the pieces of one reply in order. `finish_reason` stays None while the stream has not come to its end."""

    on_text: Callable[[str], None] | None = None
    finish_reason: str | None = None
    model: str | None = None
    _text: list[str] = field(default_factory=list[str])
    _reasoning: list[str] = field(default_factory=list[str])
    _reasoning_key: str | None = None
    _calls: list[_Call] = field(default_factory=list[_Call])
    _slots: dict[int, _Call] = field(default_factory=dict[int, _Call])
    _counts: _Counts | None = None

    def add(self, piece: Piece) -> None:
        """Take one piece."""
        self.model = piece.model or self.model
        self._counts = piece.usage or self._counts
        for choice in (piece.choices or [])[:1]:
            part = choice.delta or choice.message
            if part is not None:
                self._add_part(part)
            self.finish_reason = choice.finish_reason or self.finish_reason

    def reply(self) -> Reply:
        """The whole reply; `model`, cost, seconds and retries are left for the client to fill in."""
        counts = self._counts or _Counts()
        prompt, completion = counts.prompt_tokens_details or _Details(), counts.completion_tokens_details or _Details()
        calls = tuple(ToolCall(id=c.id, name=c.name, arguments=_join(c.arguments)) for c in self._calls)
        return Reply(
            text=_join(self._text),
            reasoning=_join(self._reasoning) or None,
            reasoning_key=self._reasoning_key,
            tool_calls=_with_unique_ids(calls),
            finish_reason=_FINISH.get(self.finish_reason or "", "other"),
            model=self.model or "",
            cost_usd=counts.cost,
            usage=Usage(
                prompt_tokens=counts.prompt_tokens,
                completion_tokens=counts.completion_tokens,
                cached_tokens=prompt.cached_tokens,
                reasoning_tokens=completion.reasoning_tokens,
            ),
        )

    def _add_part(self, part: _Delta) -> None:
        for text in (part.content, part.refusal):
            if text:
                self._text.append(text)
                if self.on_text is not None:
                    self.on_text(_join([text]))
        # Both names at once would be the same text twice.
        for key, thought in (("reasoning_content", part.reasoning_content), ("reasoning", part.reasoning)):
            if thought and self._reasoning_key in (None, key):
                self._reasoning.append(thought)
                self._reasoning_key = key
        for call in part.tool_calls or []:
            self._add_call(call)

    def _add_call(self, piece: _CallPiece) -> None:
        index = piece.index if piece.index is not None else self._slot_without_index(piece)
        call = self._slots.get(index)
        if call is None or (piece.id and call.id and piece.id != call.id):
            call = _Call("", "", [])
            self._slots[index] = call
            self._calls.append(call)
        call.id = call.id or piece.id or ""
        call.name = call.name or piece.function.name or ""
        if piece.function.arguments:
            call.arguments.append(piece.function.arguments)

    def _slot_without_index(self, piece: _CallPiece) -> int:
        """A piece with a new id or, lacking ids, with a name begins a call; any other goes on with the last one."""
        last = len(self._slots) - 1
        if last < 0:
            return 0
        begins = piece.id not in (None, "", self._slots[last].id) if piece.id else bool(piece.function.name)
        return last + 1 if begins else last


def _with_unique_ids(calls: tuple[ToolCall, ...]) -> tuple[ToolCall, ...]:
    """Some servers give no ids, or the same one twice; an answer could then not be told to which call it belongs."""
    seen: set[str] = set()
    result: list[ToolCall] = []
    for number, call in enumerate(calls, 1):
        name = call.id or f"call_{number}"
        while name in seen:
            name += "_"
        seen.add(name)
        result.append(call.model_copy(update={"id": name}))
    return tuple(result)
