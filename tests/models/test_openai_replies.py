"""The OpenAI client against a real server: what is sent, and what a reply becomes."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest
from protocol_server import ProtocolServer, Stream, call, chunk, refuses, says, whole

from agent.models import ToolSpec
from agent.models.openai_client import OpenAIClient
from transcripts.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage

ASK = [SystemMessage(text="You write kernels."), UserMessage(text="Go.")]
TOOL = ToolSpec("submit", "End the run.", {"type": "object", "properties": {"candidate": {"type": "string"}}})


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


def test_content_in_parts(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    parts = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": "hello"}]
    openai_server.script(Stream([chunk({"content": parts}), chunk({"content": " you"}, finish="stop")]))
    assert make().reply(ASK, []).text == "hello you"


def test_interrupt_passes_through_and_leaves_a_client_that_works(
    openai_server: ProtocolServer, make: Callable[..., OpenAIClient]
) -> None:
    openai_server.script(says("long " * 50), says("again"))
    client = make()

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        client.reply(ASK, [], on_text=interrupted)
    assert client.reply(ASK, []).text == "again"


def test_empty_reply_is_a_reply(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    openai_server.script(says(""))
    assert make().reply(ASK, []).empty


def test_slow_drip(openai_server: ProtocolServer, make: Callable[..., OpenAIClient]) -> None:
    stream = says("slowly", size=1)
    stream.delay = 0.03
    openai_server.script(stream)
    assert make(read_timeout=5.0).reply(ASK, []).text == "slowly"
