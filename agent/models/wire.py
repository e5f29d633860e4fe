"""Our messages and tools as the OpenAI chat-completions protocol writes them."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence

from pydantic import JsonValue

from agent.models.base import ToolSpec
from transcripts.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage

# Servers refuse empty assistant messages, and a conversation without them would no longer alternate.
EMPTY_REPLY = "(empty reply)"


def wire_messages(messages: Sequence[Message]) -> list[dict[str, JsonValue]]:
    """The conversation, mended where a model's own mistake would make servers refuse to read on."""
    return [_wire_message(message) for message in messages]


def wire_tools(tools: Sequence[ToolSpec]) -> list[dict[str, JsonValue]]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def _wire_message(message: Message) -> dict[str, JsonValue]:
    match message:
        case SystemMessage() | UserMessage():
            return {"role": message.role, "content": message.text}
        case ToolMessage():
            return {"role": "tool", "tool_call_id": message.call_id, "content": message.text}
        case AssistantMessage():
            wire: dict[str, JsonValue] = {"role": "assistant", "content": message.text or None}
            if message.reasoning and message.reasoning_key:
                wire[message.reasoning_key] = message.reasoning
            if message.tool_calls:
                wire["tool_calls"] = [_wire_call(call) for call in message.tool_calls]
            elif not message.text.strip():
                wire["content"] = EMPTY_REPLY
            return wire


def _wire_call(call: ToolCall) -> JsonValue:
    # Names that do not exist are answered by the loop, but the protocol allows only these characters in any name.
    name = re.sub(r"[^A-Za-z0-9_-]", "_", call.name)[:64] or "unnamed"
    return {"id": call.id, "type": "function", "function": {"name": name, "arguments": _object_text(call.arguments)}}


def _object_text(arguments: str) -> str:
    """The arguments if they are a JSON object; else the broken text within one, since chat templates parse it."""
    try:
        if isinstance(json.loads(arguments), dict):
            return arguments
    except ValueError:
        pass
    return json.dumps({"unreadable_arguments": arguments}) if arguments.strip() else "{}"
