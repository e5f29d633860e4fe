"""What a failed request means: which `ModelError` it is, whether waiting helps, and for how long the server asks."""

from __future__ import annotations

import email.utils
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime

from agent.models.base import (
    BadRequest,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    RateLimited,
    ServerFailed,
    ToolsNotSupported,
    Unauthorized,
)

# How servers say that a conversation is too long (OpenAI, vLLM, llama.cpp, OpenRouter, Anthropic's and Google's
# compatible endpoints, Ollama).
_TOO_LONG = re.compile(
    r"context[_ ]length|context window|context size|maximum context|max_model_len|prompt is too long|input is too long"
    r"|too many (input )?tokens|reduce the length|exceeds? the (maximum|max|available|limit)[^.]*token"
    r"|input token count|request too large",
    re.IGNORECASE,
)
_NO_TOOLS = re.compile(
    r"(not support|unsupported|no endpoints found|requires?|not (enabled|allowed|available))[^.]*\b(tools?|function)"
    r"|\b(tools?|tool[_ ]choice|function[_ ]call\w*)\b[^.]*(not support|unsupported|requires?|not (enabled|allowed))",
    re.IGNORECASE,
)
_NO_MODEL = re.compile(
    r"model[_ ]not[_ ]found|no such model|(unknown|invalid) model|model [^.]*(does not exist|not found|not a valid)"
    r"|not a valid model",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient[_ ](quota|credits?|balance)|exceeded your current quota|billing", re.IGNORECASE)


@dataclass(frozen=True)
class Refusal:
    """A failed request as the server put it: `status` of HTTP, `code` of the error object, and the words."""

    status: int
    code: str
    message: str
    headers: Mapping[str, str]


def judge(refusal: Refusal, *, model: str, base_url: str) -> tuple[ModelError, bool]:
    """The error to raise for a refusal, and whether waiting may help."""
    status, said = refusal.status, _shortened(refusal.message)
    words = f"{refusal.code} {refusal.message}"
    if status in (400, 404, 413, 422, 500) and _NO_TOOLS.search(words):
        return ToolsNotSupported(
            f"{model} at {base_url} takes no tool calls ({status}: {said}). Choose a model with tool calling; with "
            "vLLM start the server with --enable-auto-tool-choice and --tool-call-parser, with llama.cpp with --jinja."
        ), False
    if status == 413 or (status in (400, 422, 500) and _TOO_LONG.search(words)):
        return ContextTooLong(
            f"The conversation no longer fits into the context of {model} ({status}: {said}). Take a model with a "
            "longer context, or start again with fewer turns."
        ), False
    if status in (401, 403):
        return Unauthorized(
            f"{base_url} refused the key ({status}: {said}). Check OPENAI_API_KEY, whether it belongs to this "
            f"endpoint, and whether it may use {model}."
        ), False
    if status == 404 or (status in (400, 422) and _NO_MODEL.search(words)):
        return ModelNotFound(
            f"{base_url} knows no model {model!r}, or is no such endpoint ({status}: {said}). Check --model, and "
            "--base-url, which for most servers ends in /v1."
        ), False
    if status == 402 or (status == 429 and _NO_CREDIT.search(words)):
        return RateLimited(
            f"The account at {base_url} has no credit left ({status}: {said}). Add credit or use another key; the "
            "same command then goes on."
        ), False
    if status == 429:
        return RateLimited(
            f"{base_url} kept answering 429, too many requests ({said}). Run the same command again later, or give "
            "it more patience."
        ), True
    if status in (408, 409, 425) or status >= 500:
        return ServerFailed(
            f"{base_url} kept failing ({status}: {said}). Run the same command again later: it goes on from here."
        ), True
    return BadRequest(f"{base_url} refused the request ({status}: {said}). Check --model and its options."), False


def retry_after(headers: Mapping[str, str], *, now: datetime | None = None) -> float | None:
    """For how many seconds the server asks to wait: `retry-after-ms`, or `Retry-After` as seconds or as an HTTP date.

    None if it does not ask, or not in a readable form; never negative.
    """
    milliseconds = _number(headers.get("retry-after-ms"))
    if milliseconds is not None:
        return max(milliseconds / 1000, 0.0)
    value = headers.get("retry-after")
    seconds = _number(value)
    if seconds is not None:
        return max(seconds, 0.0)
    if value is None:
        return None
    try:
        date = email.utils.parsedate_to_datetime(value)
    except ValueError:
        return None
    if date.tzinfo is None:
        date = date.replace(tzinfo=UTC)
    return max((date - (now or datetime.now(UTC))).total_seconds(), 0.0)


def _number(value: str | None) -> float | None:
    try:
        number = float(value) if value is not None else None
    except ValueError:
        return None
    return number if number is not None and number == number and abs(number) != float("inf") else None


def _shortened(message: str) -> str:
    text = " ".join(message.split())
    return text if len(text) <= 300 else text[:300] + "…"
