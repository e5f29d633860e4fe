"""Replies from any server that speaks the OpenAI chat-completions protocol, streamed, with native tool calling.

The SDK's own retries are off: it does not retry a stream that is cut, and does not say that it waits. Here a reply is
taken whole or not at all; 429, 5xx and lost connections are tried again within `patience` seconds, at the pace that the
server asks for. Failures that usually are no matter of waiting (nobody listens, streams that are cut or garbled every
time) are given up after a few attempts, since each may cost money.
"""

from __future__ import annotations

import ipaddress
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast
from urllib.parse import urlsplit

import httpx2
import openai
from pydantic import JsonValue, ValidationError
from tenacity import RetryCallState, Retrying, retry_if_exception_type, wait_exponential_jitter

from agent.models.assembly import Assembly, Piece
from agent.models.base import BadRequest, ConnectionFailed, ModelError, NoApiKey, ServerFailed, ToolSpec
from agent.models.failures import Refusal, judge, retry_after
from agent.models.prices import cost_usd
from agent.models.wire import wire_messages, wire_tools
from transcripts.messages import Message, Reply

DEFAULT_BASE_URL = "https://api.openai.com/v1"
ReasoningEffort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]

# Attempts at one reply that may end with a cut stream, garbage, or no connection at all.
MAX_BROKEN = 5


@dataclass(frozen=True)
class Options:
    """What is asked of the model. None leaves it to the server. Times in seconds: `patience` bounds the waiting between
    all attempts at one reply, `read_timeout` the silence within one attempt."""

    max_tokens: int | None = None
    temperature: float | None = None
    reasoning_effort: ReasoningEffort | None = None
    patience: float = 600.0
    read_timeout: float = 600.0


class OpenAIClient:
    """A `ModelClient`. `on_wait` hears of each retry: the reason in words, and the seconds until the next attempt."""

    def __init__(
        self,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        options: Options | None = None,
        on_wait: Callable[[str, float], None] | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """`base_url` and `api_key` default to OPENAI_BASE_URL and OPENAI_API_KEY; a server on this machine needs no
        key. Raises NoApiKey, or BadRequest for an unusable address."""
        self.model = model
        self.base_url = (base_url or os.environ.get("OPENAI_BASE_URL") or DEFAULT_BASE_URL).rstrip("/")
        self._options = options or Options()
        self._on_wait = on_wait
        self._sleep = sleep
        host = _host(self.base_url)
        self._local = _is_loopback(host)
        self._key = (api_key or os.environ.get("OPENAI_API_KEY") or "").strip()
        if not self._key and not self._local:
            raise NoApiKey(
                f"No API key for {self.base_url}. Set OPENAI_API_KEY (to any text if that server wants none), or run "
                "without a model: `--recorded NAME` or `--mailbox DIR`."
            )
        # Only OpenAI's own endpoints insist on the newer name; most others know only the older one.
        new_name = host.endswith(("openai.com", "azure.com"))
        self._max_tokens_name = "max_completion_tokens" if new_name else "max_tokens"
        self._usage_wanted = True
        timeout = openai.Timeout(self._options.read_timeout, connect=15.0, pool=15.0)
        self._client = openai.OpenAI(
            api_key=self._key or "none",
            base_url=self.base_url,
            max_retries=0,
            timeout=timeout,
            # Proxies of the environment are not for this machine.
            http_client=openai.DefaultHttpxClient(trust_env=False, timeout=timeout) if self._local else None,
        )

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Reply:
        """See `ModelClient.reply`."""
        started = time.monotonic()
        retrying = Retrying(
            retry=retry_if_exception_type(_Unlucky),
            wait=_Pace(),
            stop=_Patience(self._options.patience),
            before_sleep=self._tell,
            sleep=self._sleep,
            reraise=True,
        )
        try:
            reply = retrying(self._attempt, messages, tools, on_text)
        except _Unlucky as unlucky:
            spent = time.monotonic() - started
            asked = f"; it asks to wait {unlucky.wait:.0f} s more" if unlucky.wait else ""
            attempts = int(retrying.statistics["attempt_number"])
            raise type(unlucky.error)(
                f"{unlucky.error} ({attempts} attempts in {spent:.0f} s{asked})"
            ) from unlucky.__cause__
        cost = reply.cost_usd
        if cost is None and not self._local:
            cost = cost_usd(reply.model or self.model, reply.usage, self.base_url)
        return reply.model_copy(
            update={
                "model": reply.model or self.model,
                "cost_usd": cost,
                "seconds": time.monotonic() - started,
                "retries": int(retrying.statistics["attempt_number"]) - 1,
            }
        )

    def close(self) -> None:
        """See `ModelClient.close`."""
        self._client.close()

    def _tell(self, state: RetryCallState) -> None:
        unlucky = state.outcome.exception() if state.outcome else None
        if self._on_wait is not None and isinstance(unlucky, _Unlucky):
            self._on_wait(unlucky.reason, state.upcoming_sleep)

    def _attempt(
        self, messages: Sequence[Message], tools: Sequence[ToolSpec], on_text: Callable[[str], None] | None
    ) -> Reply:
        """One whole reply, or an `_Unlucky` that may go better next time, or a final ModelError."""
        try:
            assembly = Assembly(on_text)
            for piece in self._pieces(messages, tools):
                if piece.error:
                    raise self._refused(_refusal_in_stream(piece.error))
                assembly.add(piece)
        except openai.APIStatusError as error:
            refusal = Refusal(error.status_code, error.code or "", error.message, error.response.headers)
            if self._usage_wanted and error.status_code in (400, 422) and "stream_options" in error.message:
                self._usage_wanted = False
                return self._attempt(messages, tools, on_text)
            raise self._refused(refusal) from error
        except (openai.APIConnectionError, httpx2.HTTPError) as error:
            raise self._disconnected(error) from error
        except openai.APIError as error:
            raise self._refused(_refusal_in_stream(error.body)) from error
        except (ValueError, ValidationError) as error:
            raise self._garbled("what it sent is no JSON of this protocol") from error
        if assembly.finish_reason is None:
            raise self._garbled("the stream ended before the reply did")
        return assembly.reply()

    def _pieces(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> Iterator[Piece]:
        # The SDK's types know each field of the request; ours are built as plain JSON, so they are not compared.
        create = cast(Any, self._client.chat.completions.with_streaming_response.create)
        with create(**self._request(messages, tools)) as response:
            kind = str(response.headers.get("content-type", ""))
            if "text/html" in kind:
                raise BadRequest(
                    f"{self.base_url} answers with a web page: it is no OpenAI-compatible endpoint. Check --base-url, "
                    "which for most servers ends in /v1."
                )
            if "application/json" in kind:
                # The server does not stream.
                yield Piece.model_validate_json(response.read())
                return
            for chunk in response.parse():
                yield Piece.model_validate(chunk.to_dict(warnings=False) if hasattr(chunk, "to_dict") else chunk)

    def _request(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> dict[str, Any]:
        options = self._options
        request: dict[str, Any] = {"model": self.model, "messages": wire_messages(messages), "stream": True}
        if tools:
            request["tools"] = wire_tools(tools)
        if self._usage_wanted:
            request["stream_options"] = {"include_usage": True}
        if options.max_tokens is not None:
            request[self._max_tokens_name] = options.max_tokens
        if options.temperature is not None:
            request["temperature"] = options.temperature
        if options.reasoning_effort is not None:
            request["reasoning_effort"] = options.reasoning_effort
        return request

    def _refused(self, refusal: Refusal) -> Exception:
        # Some servers quote the key in full.
        message = refusal.message.replace(self._key, "…") if self._key else refusal.message
        refusal = Refusal(refusal.status, refusal.code, message, refusal.headers)
        error, again = judge(refusal, model=self.model, base_url=self.base_url)
        if not again:
            return error
        reason = "too many requests" if refusal.status == 429 else f"server error {refusal.status}"
        # A gateway that gave up waiting has cost its whole time-out.
        return _Unlucky(error, reason, wait=retry_after(refusal.headers), broken=refusal.status in (408, 504))

    def _disconnected(self, error: Exception) -> Exception:
        said = str(error.__cause__ or error).strip() or type(error).__name__
        help_ = (
            "Is the server running, and is --base-url right?" if self._local else "Check the network and --base-url."
        )
        failure = ConnectionFailed(f"The connection to {self.base_url} failed ({said}). {help_}")
        return _Unlucky(failure, "connection lost", broken=True)

    def _garbled(self, how: str) -> Exception:
        failure = ServerFailed(
            f"{self.base_url} gave no whole reply: {how}. Run the same command again, or try another server or model."
        )
        return _Unlucky(failure, "broken reply", broken=True)


class _Unlucky(Exception):  # noqa: N818
    """An attempt that may go better next time; `error` is what it means if it does not."""

    def __init__(self, error: ModelError, reason: str, *, wait: float | None = None, broken: bool = False) -> None:
        super().__init__(str(error))
        self.error = error
        self.reason = reason
        self.wait = wait
        self.broken = broken


class _Pace:
    """As long as the server asks, else exponentially longer with jitter. A server that asks for no wait at all, again
    and again, still gets a growing one."""

    def __init__(self) -> None:
        self._growing = wait_exponential_jitter(initial=1.0, max=60.0)

    def __call__(self, state: RetryCallState) -> float:
        unlucky = state.outcome.exception() if state.outcome else None
        own = self._growing(state)
        asked = unlucky.wait if isinstance(unlucky, _Unlucky) else None
        return own if asked is None else max(asked, own / 10)


class _Patience:
    """Stops before the waits add up to more than `seconds`, and after MAX_BROKEN broken attempts. One per reply.

    Only waits count: a reply that took long and then was cut is worth another attempt.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._broken = 0

    def __call__(self, state: RetryCallState) -> bool:
        unlucky = state.outcome.exception() if state.outcome else None
        if isinstance(unlucky, _Unlucky) and unlucky.broken:
            self._broken += 1
        return self._broken >= MAX_BROKEN or state.idle_for + state.upcoming_sleep > self._seconds


def _refusal_in_stream(body: object) -> Refusal:
    """An error object that came within a stream, after status 200; without a usable code it counts as 500."""
    fields = cast("dict[str, JsonValue]", body) if isinstance(body, dict) else {"message": str(body)}
    code = str(fields.get("code") or fields.get("type") or "")
    status = int(code) if code.isdigit() and 400 <= int(code) < 600 else 500
    if status == 500 and "rate" in code:
        status = 429
    return Refusal(status, code, str(fields.get("message") or json.dumps(fields)), {})


def _host(base_url: str) -> str:
    try:
        parts = urlsplit(base_url)
        host = parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        host = None
    if not host:
        raise BadRequest(f"{base_url!r} is no web address. Give --base-url like http://127.0.0.1:8000/v1.")
    return host


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
