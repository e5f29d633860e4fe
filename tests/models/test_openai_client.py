"""The OpenAI client against a real server: what a reply becomes, and how each failure ends."""

from __future__ import annotations

import email.utils
import json
import socket
import time
from collections.abc import Callable
from typing import Any

import pytest
from protocol_server import (
    Exchange,
    ProtocolServer,
    Stream,
    call,
    chunk,
    cut,
    refuses,
    says,
    whole,
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
from transcripts.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage

ASK = [SystemMessage(text="You write kernels."), UserMessage(text="Go.")]
TOOL = ToolSpec("submit", "End the run.", {"type": "object", "properties": {"candidate": {"type": "string"}}})


class Clock:
    """Stands in for `time.sleep`, so that the waits can be read and cost nothing."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def make(openai_server: ProtocolServer, clock: Clock) -> Callable[..., OpenAIClient]:
    def build(**options: Any) -> OpenAIClient:
        return OpenAIClient("m", base_url=openai_server.base_url, options=Options(**options), sleep=clock)

    return build


def test_streamed_reply_is_put_together(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    arguments = {"candidate": "k1", "note": 'a "quoted" \u2192 text'}
    openai_server.script(says("I submit k1 now.", call("a1", "submit", arguments), call("a2", "submit", {})))
    pieces: list[str] = []
    reply = make().reply(ASK, [TOOL], on_text=pieces.append)
    assert reply.text == "I submit k1 now." == "".join(pieces)
    assert len(pieces) > 1
    assert [(c.id, c.name, json.loads(c.arguments)) for c in reply.tool_calls] == [
        ("a1", "submit", arguments),
        ("a2", "submit", {}),
    ]
    assert reply.finish_reason == "tool_calls"
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (100, 20)
    assert reply.model == "test-model"
    assert reply.retries == 0
    assert reply.seconds > 0


def test_request_carries_conversation_tools_and_options(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient]
) -> None:
    openai_server.script(says("ok"))
    broken = ToolCall(id="x", name="sub mit!", arguments='{"a": ')
    history = [
        *ASK,
        AssistantMessage(text="", reasoning="hm", reasoning_key="reasoning_content", tool_calls=(broken,)),
        ToolMessage(call_id="x", name="submit", text="unreadable"),
        AssistantMessage(),
        UserMessage(text="Call a tool."),
    ]
    make(max_tokens=50, reasoning_effort="low").reply(history, [TOOL])
    body = openai_server.requests[0]
    assert openai_server.paths == ["/v1/chat/completions"]
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["max_tokens"] == 50
    assert body["reasoning_effort"] == "low"
    assert "temperature" not in body
    assert body["tools"][0]["function"]["parameters"] == TOOL.parameters
    sent = body["messages"]
    assert [m["role"] for m in sent] == ["system", "user", "assistant", "tool", "assistant", "user"]
    assert sent[2]["reasoning_content"] == "hm"
    function = sent[2]["tool_calls"][0]["function"]
    assert function["name"] == "sub_mit_"
    assert json.loads(function["arguments"]) == {"unreadable_arguments": '{"a": '}
    assert sent[3]["tool_call_id"] == "x"
    # Servers refuse an assistant message with nothing in it.
    assert sent[4]["content"]


def test_server_that_does_not_stream(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(whole("hello", call("a1", "submit", {"candidate": "k2"})))
    pieces: list[str] = []
    reply = make().reply(ASK, [TOOL], on_text=pieces.append)
    assert (reply.text, pieces, reply.usage.prompt_tokens) == ("hello", ["hello"], 100)
    assert reply.tool_calls == (ToolCall(id="a1", name="submit", arguments='{"candidate": "k2"}'),)


def test_usage_unknown_stays_unknown(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(says("ok", usage=None))
    reply = make().reply(ASK, [])
    assert reply.usage.prompt_tokens is None
    assert reply.cost_usd is None


def test_usage_details_reasoning_and_cost(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    usage = {
        "prompt_tokens": 9,
        "completion_tokens": 5,
        "total_tokens": 14,
        "prompt_tokens_details": {"cached_tokens": 4},
        "completion_tokens_details": {"reasoning_tokens": 3},
        "cost": 0.25,
    }
    thought = chunk({"reasoning": "let me see", "reasoning_content": None})
    openai_server.script(Stream([thought, chunk({"content": "ok"}, finish="length"), chunk(usage=usage)]))
    reply = make().reply(ASK, [])
    assert (reply.usage.cached_tokens, reply.usage.reasoning_tokens, reply.cost_usd) == (4, 3, 0.25)
    assert (reply.reasoning, reply.reasoning_key, reply.finish_reason) == ("let me see", "reasoning", "length")


def test_server_that_knows_no_stream_options(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(refuses(400, "Unrecognized request argument: stream_options"), says("ok"), says("again"))
    client = make()
    assert client.reply(ASK, []).text == "ok"
    client.reply(ASK, [])
    assert ["stream_options" in body for body in openai_server.requests] == [True, False, False]


def _parts(*parts: dict[str, Any]) -> Stream:
    return Stream([*(chunk({"tool_calls": [part]}) for part in parts), chunk(finish="tool_calls")])


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (
            # no index at all, a name with every piece
            _parts(
                {"id": "a", "function": {"name": "f", "arguments": '{"x"'}},
                {"id": "a", "function": {"name": "f", "arguments": ":1}"}},
                {"id": "b", "function": {"name": "g", "arguments": "{}"}},
            ),
            [("a", "f", '{"x":1}'), ("b", "g", "{}")],
        ),
        (
            # every call at index 0
            _parts(
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
                {"index": 0, "id": "b", "function": {"name": "g", "arguments": "{}"}},
            ),
            [("a", "f", "{}"), ("b", "g", "{}")],
        ),
        (
            # no ids, and arguments as an object
            _parts(
                {"index": 0, "function": {"name": "f", "arguments": {"x": 1}}},
                {"index": 1, "function": {"name": "f", "arguments": None}},
            ),
            [("call_1", "f", '{"x": 1}'), ("call_2", "f", "")],
        ),
        (
            # the same id twice, at two places
            _parts(
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}},
                {"index": 1, "id": "a", "function": {"name": "g", "arguments": "{}"}},
            ),
            [("a", "f", "{}"), ("a_", "g", "{}")],
        ),
        (
            # pieces of two calls in turn
            _parts(
                {"index": 0, "id": "a", "function": {"name": "f", "arguments": "[0"}},
                {"index": 1, "id": "b", "function": {"name": "g", "arguments": "[1"}},
                {"index": 0, "function": {"arguments": "0]"}},
                {"index": 1, "function": {"arguments": "1]"}},
            ),
            [("a", "f", "[00]"), ("b", "g", "[11]")],
        ),
    ],
    ids=["no-index", "index-always-0", "no-ids", "same-id", "interleaved"],
)
def test_dialects_of_tool_calls(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], stream: Stream, expected: list[tuple[str, ...]]
) -> None:
    openai_server.script(stream)
    reply = make().reply(ASK, [TOOL])
    assert [(c.id, c.name, c.arguments) for c in reply.tool_calls] == expected


def test_surrogate_pair_split_over_two_chunks(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(
        Stream(
            [chunk({"content": "a\ud83d"}), chunk({"content": "\ude80b"}), chunk({"content": "\ud83d"}, finish="stop")]
        )
    )
    reply = make().reply(ASK, [])
    assert reply.text == "a\U0001f680b\ufffd"
    reply.model_dump_json()


def test_empty_reply_is_a_reply(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(says(""))
    assert make().reply(ASK, []).empty


def test_slow_drip(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    stream = says("slowly", size=1)
    stream.delay = 0.03
    openai_server.script(stream)
    assert make(read_timeout=5.0).reply(ASK, []).text == "slowly"


def test_silence_is_a_lost_connection(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient], clock: Clock
) -> None:
    silent = says("never")
    silent.delay = 1.5
    openai_server.script(silent, says("then"))
    reply = make(read_timeout=0.3).reply(ASK, [])
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


def test_real_waiting_ends_within_the_patience(openai_server: ProtocolServer) -> None:
    openai_server.script([refuses(429, headers={"Retry-After": "0.05"})] * 100)
    client = OpenAIClient("m", base_url=openai_server.base_url, options=Options(patience=0.5))
    with pytest.raises(RateLimited):
        client.reply(ASK, [])
    assert 2 <= len(openai_server.requests) <= 10


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
