"""A C++ and CUDA tokenizer, enough to find definitions: comments and white space fall away, strings stay whole."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["name", "number", "string", "char", "punct", "directive"]

_TOKEN = re.compile(
    r"""
    (?P<space>\s+)
  | (?P<comment>//(?:\\\n|[^\n])*|/\*.*?(?:\*/|\Z))
  | (?P<raw>(?:u8|[uUL])?R"(?P<delim>[^()\\\s]{0,16})\(.*?\)(?P=delim)")
  | (?P<string>(?:u8|[uUL])?"(?:\\.|[^"\\\n])*")
  | (?P<char>[uUL]?'(?:\\.|[^'\\\n])+')
  | (?P<number>\.?\d(?:[eEpP][+-]|'\w|[\w.])*)
  | (?P<name>[A-Za-z_$]\w*)
  | (?P<launch><<<)
  | (?P<punct>::|->|\.\.\.|&&|\|\||==|!=|<=|>=|\+\+|--|[+\-*/%&|^]=|<<|.)
    """,
    re.VERBOSE | re.DOTALL,
)
_DIRECTIVE = re.compile(r"[ \t]*#(?:\\\n|/\*.*?\*/|[^\n])*", re.DOTALL)
_IF_ZERO = re.compile(r"[ \t]*#[ \t]*if[ \t]+(?:0|false)\b")
_IF = re.compile(r"[ \t]*#[ \t]*if")
_ELSE = re.compile(r"[ \t]*#[ \t]*(?:else|elif)\b")
_ENDIF = re.compile(r"[ \t]*#[ \t]*endif\b")


@dataclass(frozen=True, slots=True)
class Token:
    """One token; `start` and `end` are offsets into the text, so that `text[start:end]` is the token as written."""

    kind: Kind
    text: str
    start: int
    end: int


def tokenize(text: str) -> list[Token]:
    """Tokens of `text`. Preprocessor lines are one token each; what lies under `#if 0` is left out.

    `>>` and `>>>` come as single `>`, since they may close templates. Unknown characters are punctuation: this
    never fails, whatever a model writes.
    """
    tokens: list[Token] = []
    position = 0
    line_begins = True
    while position < len(text):
        if line_begins and (directive := _DIRECTIVE.match(text, position)):
            end = directive.end()
            if _IF_ZERO.match(text, position):
                end = _skip_disabled(text, end)
            else:
                tokens.append(Token("directive", text[position:end].strip(), position, end))
            position = end
            line_begins = False
            continue
        match = _TOKEN.match(text, position)
        assert match is not None  # the last alternative takes any character
        kind = match.lastgroup
        value = match.group()
        position = match.end()
        if kind == "space":
            line_begins = line_begins or "\n" in value
            continue
        if kind == "comment":
            continue
        line_begins = False
        tokens.append(Token(_kind(kind), value, match.start(), position))
    return tokens


def _kind(group: str | None) -> Kind:
    match group:
        case "name":
            return "name"
        case "number":
            return "number"
        case "char":
            return "char"
        case "raw" | "delim" | "string":
            return "string"
        case _:
            return "punct"


def _skip_disabled(text: str, position: int) -> int:
    """Offset behind the `#endif`, or the `#else`, that ends a block which the preprocessor drops."""
    depth = 1
    while position < len(text):
        newline = text.find("\n", position)
        if newline < 0:
            return len(text)
        position = newline + 1
        if _IF.match(text, position):
            depth += 1
        elif _ENDIF.match(text, position):
            depth -= 1
        elif depth > 1 or not _ELSE.match(text, position):
            continue
        if depth == 0 or (depth == 1 and _ELSE.match(text, position)):
            directive = _DIRECTIVE.match(text, position)
            return directive.end() if directive else position
    return len(text)


def blank(text: str, start: int, end: int) -> str:
    """`text` with the span overwritten by spaces; line breaks stay, so that line numbers do."""
    return text[:start] + re.sub(r"[^\n]", " ", text[start:end]) + text[end:]


def line_of(text: str, offset: int) -> int:
    """The 1-based line on which `offset` lies."""
    return text.count("\n", 0, offset) + 1
