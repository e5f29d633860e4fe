"""The OpenAI client against a real server: how each failure ends, and what it says to do next."""

from __future__ import annotations

import email.utils
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from protocol_server import (
    Clock,
    Exchange,
    ProtocolServer,
    Stream,
    call,
    chunk,
    cut,
    refuses,
    says,
)

from agent.models import (
    BadRequest,
    ConnectionFailed,
    ContextTooLong,
    ModelError,
    ModelNotFound,
    NoApiKey,
    RateLimited,
    ServerFailed,
    ToolsNotSupported,
    ToolSpec,
    Unauthorized,
)
from agent.models.openai_client import MAX_BROKEN, OpenAIClient, Options
from transcripts.messages import SystemMessage, UserMessage

ASK = [SystemMessage(text="You write kernels."), UserMessage(text="Go.")]
TOOL = ToolSpec("submit", "End the run.", {"type": "object", "properties": {"candidate": {"type": "string"}}})


def test_silence_is_a_lost_connection(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    silent = says("never")
    silent.delay = 5.0
    openai_server.script(silent, says("then"))
    reply = make(read_timeout=1.0).reply(ASK, [])
    assert (reply.text, reply.retries, len(clock.waits)) == ("then", 1, 1)


def test_cut_stream_is_taken_again_as_a_whole(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    openai_server.script(cut(says("first attempt", call("a", "submit", {}))), says("second attempt"))
    reply = make().reply(ASK, [TOOL])
    assert (reply.text, reply.tool_calls, reply.retries) == ("second attempt", (), 1)
    assert openai_server.requests[0] == openai_server.requests[1]
    assert len(clock.waits) == 1


def test_stream_that_ends_early_without_an_error_is_cut_too(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient]
) -> None:
    openai_server.script(Stream([chunk({"content": "half a"})], done=False), says("whole"))
    assert make().reply(ASK, []).text == "whole"


@pytest.mark.parametrize(
    "bad",
    [
        Stream([chunk({"content": "x"}), '{"choices": [{"delta"']),
        Stream(["[1, 2]"]),
        Stream([{"choices": "none"}]),
        lambda exchange: exchange.send(200, b"{", {"Content-Type": "application/json"}),
    ],
    ids=["half-json", "a-list", "wrong-type", "json-answer"],
)
def test_garbage_is_retried_and_given_up(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock, bad: Any
) -> None:
    openai_server.script(bad, says("fine"))
    assert make().reply(ASK, []).text == "fine"
    openai_server.script([bad] * MAX_BROKEN)
    with pytest.raises(ServerFailed, match=f"no JSON of this protocol.*{MAX_BROKEN} attempts"):
        make().reply(ASK, [])
    assert openai_server.left == 0


def test_error_object_within_a_stream(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    def broken(code: int | str, message: str) -> Stream:
        return Stream([chunk({"content": "x"}), {"error": {"code": code, "message": message}}])

    openai_server.script(broken(502, "upstream died"), broken("server_error", "oops"), says("fine"))
    assert make().reply(ASK, []).retries == 2
    openai_server.script(broken(400, "maximum context length is 8192 tokens"))
    with pytest.raises(ContextTooLong):
        make().reply(ASK, [])


def test_retry_after_in_seconds_milliseconds_and_as_a_date(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    date = email.utils.formatdate(time.time() + 40, usegmt=True)
    openai_server.script(
        refuses(429, headers={"Retry-After": "7"}),
        refuses(429, headers={"retry-after-ms": "1500", "Retry-After": "2"}),
        refuses(503, headers={"Retry-After": date}),
        refuses(429, headers={"Retry-After": "soon"}),
        says("ok"),
    )
    heard: list[tuple[str, float]] = []
    client = make()
    client._on_wait = lambda reason, seconds: heard.append((reason, seconds))
    reply = client.reply(ASK, [])
    assert reply.retries == 4
    assert clock.waits[:2] == [7.0, 1.5]
    assert 30 < clock.waits[2] <= 40
    # An unreadable wish leaves our own pace: 2**3 seconds at the fourth attempt, with jitter of up to one more.
    assert 8 <= clock.waits[3] <= 9
    assert [reason for reason, _ in heard] == [
        "too many requests",
        "too many requests",
        "server error 503",
        "too many requests",
    ]
    assert [seconds for _, seconds in heard] == clock.waits


def test_429_for_longer_than_the_patience(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    openai_server.script(
        refuses(429, "slow down", headers={"Retry-After": "5"}), refuses(429, headers={"Retry-After": "900"})
    )
    with pytest.raises(RateLimited, match=r"2 attempts.*asks to wait 900 s"):
        make(patience=60).reply(ASK, [])
    assert clock.waits == [5.0]


@pytest.mark.parametrize("asked", ["0", "0.05"])
def test_real_waiting_ends_within_the_patience(openai_server: ProtocolServer, asked: str) -> None:
    """Also when the server asks for no wait, for ever."""
    openai_server.script([refuses(429, headers={"Retry-After": asked})] * 100)
    client = OpenAIClient("m", base_url=openai_server.base_url, options=Options(patience=0.5))
    with pytest.raises(RateLimited):
        client.reply(ASK, [])
    assert 3 <= len(openai_server.requests) <= 4


@pytest.mark.parametrize(
    ("answer", "error", "says_what"),
    [
        (refuses(401, "Incorrect API key provided: secret-key"), Unauthorized, "OPENAI_API_KEY"),
        (refuses(403, "not allowed"), Unauthorized, "may use m"),
        (refuses(404, "The model `m` does not exist", code="model_not_found"), ModelNotFound, "--model"),
        (refuses(400, "m is not a valid model ID"), ModelNotFound, "--model"),
        (refuses(400, "too long", code="context_length_exceeded"), ContextTooLong, "longer context"),
        (refuses(400, "This model's maximum context length is 8192 tokens."), ContextTooLong, "longer context"),
        (refuses(400, "prompt is too long: 300000 tokens > 200000 maximum"), ContextTooLong, "longer context"),
        (refuses(413, "payload"), ContextTooLong, "longer context"),
        (refuses(400, "registry.ollama.ai/library/x does not support tools"), ToolsNotSupported, "tool calling"),
        (
            refuses(400, '"auto" tool choice requires --enable-auto-tool-choice to be set'),
            ToolsNotSupported,
            "enable-auto-tool-choice",
        ),
        (refuses(404, "No endpoints found that support tool use."), ToolsNotSupported, "tool calling"),
        (refuses(500, "tools param requires --jinja flag"), ToolsNotSupported, "--jinja"),
        (refuses(400, "temperature: must be 1"), BadRequest, "temperature"),
        (refuses(422, "unknown field"), BadRequest, "unknown field"),
        (refuses(429, "You exceeded your current quota", code="insufficient_quota"), RateLimited, "Add credit"),
        (refuses(402, "Insufficient credits"), RateLimited, "Add credit"),
        (
            lambda exchange: exchange.send(200, b"<html>Welcome</html>", {"Content-Type": "text/html"}),
            BadRequest,
            "--base-url",
        ),
    ],
)
def test_refusals_are_final_and_say_what_to_do(
    openai_server: ProtocolServer,
    clock: Clock,
    answer: Callable[[Exchange], None],
    error: type[ModelError],
    says_what: str,
) -> None:
    openai_server.script(answer)
    client = OpenAIClient("m", base_url=openai_server.base_url, api_key="secret-key", sleep=clock)
    with pytest.raises(error) as caught:
        client.reply(ASK, [TOOL])
    assert type(caught.value) is error
    assert says_what in str(caught.value)
    assert "secret-key" not in str(caught.value)
    assert len(openai_server.requests) == 1
    assert clock.waits == []


def test_500_is_retried_then_given_up(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(refuses(500, "boom"), says("ok"))
    assert make().reply(ASK, []).retries == 1
    openai_server.script(refuses(500, "boom"), refuses(502, "bad gateway", headers={"Retry-After": "100"}))
    with pytest.raises(ServerFailed, match="bad gateway"):
        make(patience=50).reply(ASK, [])


def test_gateway_timeouts_are_given_up_early(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    openai_server.script([refuses(504, "timed out")] * MAX_BROKEN)
    with pytest.raises(ServerFailed, match="504"):
        make().reply(ASK, [])
    assert len(clock.waits) == MAX_BROKEN - 1


def test_nobody_listens(clock: Clock) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    client = OpenAIClient("m", base_url=f"http://127.0.0.1:{port}/v1", sleep=clock)
    with pytest.raises(ConnectionFailed, match="Is the server running"):
        client.reply(ASK, [])
    assert len(clock.waits) == MAX_BROKEN - 1


def test_keys(monkeypatch: pytest.MonkeyPatch, openai_server: ProtocolServer) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    with pytest.raises(NoApiKey, match="OPENAI_API_KEY"):
        OpenAIClient("m")
    with pytest.raises(BadRequest, match="no web address"):
        OpenAIClient("m", base_url="localhost:8000/v1")
    monkeypatch.setenv("OPENAI_API_KEY", " from-env\n")
    openai_server.script(says("ok"))
    OpenAIClient("m", base_url=openai_server.base_url).reply(ASK, [])
    assert openai_server.headers[0]["authorization"] == "Bearer from-env"


def test_proxy_of_the_environment_is_not_used_for_this_machine(
    monkeypatch: pytest.MonkeyPatch, openai_server: ProtocolServer, clock: Clock
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.delenv("NO_PROXY", raising=False)
    openai_server.script(says("ok"))
    client = OpenAIClient("m", base_url=openai_server.base_url, sleep=clock)
    assert client.reply(ASK, []).text == "ok"
    client.close()
    client.close()
