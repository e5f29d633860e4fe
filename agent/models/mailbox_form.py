"""What a person (or any coding assistant) may write as a reply: JSON, or Markdown with fenced `tool` blocks.

The Markdown form, as `prompts/mailbox.j2` explains it to the writer:

    Prose, which is the reply's text.

    ```tool evaluate_kernel
    ```
    ```python
    …source…
    ```

    ```tool edit_kernel
    id: k1
    ```
    ```python old
    …
    ```
    ```python new
    …
    ```

The body of a tool block is a JSON object or `key: value` lines. Fenced blocks that follow it directly are long
arguments: the word after the language names the argument, `source` if there is none; pairs of `old` and `new` are the
entries of `edits`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from agent.models.base import ToolSpec

_OPENING = re.compile(r"^(`{3,}|~{3,})[ \t]*([^`\n]*)$")


class Malformed(Exception):  # noqa: N818
    """The reply cannot be read; the message tells its writer what to change."""


@dataclass
class WrittenCall:
    name: str
    arguments: dict[str, JsonValue] | str


@dataclass
class WrittenReply:
    text: str = ""
    calls: list[WrittenCall] = field(default_factory=list[WrittenCall])


class _JsonCall(BaseModel):
    model_config = ConfigDict(extra="forbid")

    name: str
    arguments: dict[str, JsonValue] | str = {}


class _JsonReply(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str = ""
    tool_calls: list[_JsonCall] = []


def parse_json(content: str) -> WrittenReply:
    """Read `{"text": …, "tool_calls": [{"name": …, "arguments": {…}}]}`. Raises Malformed."""
    try:
        reply = _JsonReply.model_validate_json(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "the whole"
        raise Malformed(f"In the JSON, {where}: {first['msg']}.") from None
    return WrittenReply(reply.text, [WrittenCall(call.name, call.arguments) for call in reply.tool_calls])


def parse_markdown(content: str, tools: Sequence[ToolSpec]) -> WrittenReply:
    """Read the Markdown form; `tools` tells which arguments are text. Raises Malformed."""
    reply = WrittenReply()
    schemas = {tool.name: tool.parameters for tool in tools}
    prose: list[str] = []
    # The call that a fenced block would belong to: only blank lines have come since.
    current: WrittenCall | None = None
    for part in _parts(content.splitlines()):
        if isinstance(part, str):
            if part.strip():
                current = None
            prose.append(part)
            continue
        words = part.info.split()
        if words[:1] == ["tool"]:
            if len(words) != 2:
                raise Malformed(f"Line {part.line}: a tool block begins with ```tool and one name of a tool.")
            current = WrittenCall(words[1], _arguments(part, schemas.get(words[1], {})))
            reply.calls.append(current)
        elif current is not None:
            _add_long(current, part, words[1] if len(words) > 1 else "source")
        else:
            prose.extend(part.whole)
    for call in reply.calls:
        _check_edits(call)
    reply.text = "\n".join(prose).strip()
    return reply


@dataclass
class _Fence:
    """A fenced block: what follows the opening marks, the lines within, all lines, and where it begins."""

    info: str
    body: list[str]
    whole: list[str]
    line: int


def _parts(lines: list[str]) -> list[str | _Fence]:
    """Plain lines and fenced blocks, in order. A block ends at a line of at least as many of the same marks."""
    parts: list[str | _Fence] = []
    position = 0
    while position < len(lines):
        opening = _OPENING.match(lines[position])
        if opening is None:
            parts.append(lines[position])
            position += 1
            continue
        marks, start = opening[1], position
        closing = re.compile(rf"^{re.escape(marks[0])}{{{len(marks)},}}[ \t]*$")
        position += 1
        while position < len(lines) and not closing.match(lines[position]):
            position += 1
        if position == len(lines):
            raise Malformed(f"Line {start + 1}: the block that begins with {lines[start].strip()!r} is never closed.")
        position += 1
        parts.append(_Fence(opening[2].strip(), lines[start + 1 : position - 1], lines[start:position], start + 1))
    return parts


def _arguments(block: _Fence, schema: dict[str, JsonValue]) -> dict[str, JsonValue]:
    text = "\n".join(block.body).strip()
    if text.startswith("{"):
        try:
            return cast("dict[str, JsonValue]", json.loads(text, strict=False))
        except ValueError as error:
            raise Malformed(f"Line {block.line}: the JSON of this tool block cannot be read ({error}).") from None
    arguments: dict[str, JsonValue] = {}
    for offset, line in enumerate(block.body, 1):
        if not line.strip():
            continue
        key, colon, value = line.partition(":")
        if not colon or not re.fullmatch(r"\w+", key.strip()):
            raise Malformed(f"Line {block.line + offset}: in a tool block write JSON, or one `key: value` a line.")
        arguments[key.strip()] = _value(value.strip(), _type_of(schema, key.strip()))
    return arguments


def _value(text: str, kind: JsonValue) -> JsonValue:
    """Text stays text where the tool wants text; all else is JSON if it can be."""
    if kind == "string" and not (len(text) > 1 and text[0] == text[-1] == '"'):
        return text
    try:
        return json.loads(text)
    except ValueError:
        return text


def _type_of(schema: dict[str, JsonValue], name: str) -> JsonValue:
    properties = schema.get("properties")
    entry = properties.get(name) if isinstance(properties, dict) else None
    return entry.get("type") if isinstance(entry, dict) else None


def _add_long(call: WrittenCall, block: _Fence, name: str) -> None:
    text = "".join(line + "\n" for line in block.body)
    if name in ("old", "new"):
        _add_edit(call, block, name, text)
    elif isinstance(call.arguments, str) or name in call.arguments:
        raise Malformed(f"Line {block.line}: the argument {name!r} of {call.name} is given twice.")
    else:
        call.arguments[name] = text


def _add_edit(call: WrittenCall, block: _Fence, name: str, text: str) -> None:
    """`old` and `new` come in pairs, each of which is one entry of the argument `edits`."""
    edits = call.arguments.setdefault("edits", []) if isinstance(call.arguments, dict) else None
    if not isinstance(edits, list):
        raise Malformed(f"Line {block.line}: {call.name} has other `edits` already.")
    last = edits[-1] if edits else None
    open_edit = last if isinstance(last, dict) and "new" not in last else None
    if name == "old" and open_edit is None:
        edits.append({"old": text})
    elif name == "new" and open_edit is not None:
        open_edit["new"] = text
    else:
        raise Malformed(f"Line {block.line}: blocks `old` and `new` come in pairs, first the old text, then the new.")


def _check_edits(call: WrittenCall) -> None:
    edits = call.arguments.get("edits") if isinstance(call.arguments, dict) else None
    if isinstance(edits, list) and any(isinstance(edit, dict) and set(edit) == {"old"} for edit in edits):
        raise Malformed(f"In a call of {call.name}, a block `old` is followed by no block `new`.")
