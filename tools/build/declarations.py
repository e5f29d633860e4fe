"""Writes declarations, forwarders and repairs for functions that `scanner.scan` found."""

from __future__ import annotations

from tools.build.definitions import Function, Scan, split_parameters
from tools.build.lexer import Token, blank

_DROPPED = {
    "static", "inline", "__inline__", "__forceinline__", "constexpr", "__host__", "__device__", "__noinline__",
    "extern",
}  # fmt: skip
_SAME_TYPE = {"torch": "at", "long": "int64_t", "unsigned": "unsigned int"}


def joined(tokens: list[Token]) -> str:
    """The tokens as text, with one space where the source had any space between them."""
    text = ""
    previous: Token | None = None
    for token in tokens:
        if token.kind == "directive":
            continue
        text += " " if previous is not None and token.start > previous.end else ""
        text += token.text
        previous = token
    return text


def _qualified(tokens: list[Token]) -> list[Token]:
    """A bare `Tensor` becomes `torch::Tensor`: the other file may not have the `using` that this one has."""
    result: list[Token] = []
    for index, token in enumerate(tokens):
        bare = token.text == "Tensor" and (index == 0 or tokens[index - 1].text not in ("::", "."))
        result.append(Token("name", "torch::Tensor", token.start, token.end) if bare else token)
    return result


def _without_default(parameter: list[Token]) -> list[Token]:
    for index, token in enumerate(parameter):
        if token.text == "=":
            return parameter[:index]
    return parameter


def _words_of_head(function: Function) -> list[Token]:
    """Return type and what else must stay, without storage words and attributes such as `__launch_bounds__(256)`."""
    result: list[Token] = []
    skip_depth = 0
    attribute = False
    for token in function.head:
        if attribute and (token.text == "(" or skip_depth):
            skip_depth += {"(": 1, ")": -1}.get(token.text, 0)
            attribute = skip_depth > 0
            continue
        attribute = token.text in ("__attribute__", "__launch_bounds__", "alignas", "__align__")
        if not attribute and token.text not in _DROPPED:
            result.append(token)
    return result


def return_type(function: Function) -> str:
    """The return type as written, a trailing one in front."""
    for index, token in enumerate(function.tail):
        if token.text == "->":
            return joined(_qualified(function.tail[index + 1 :]))
    return joined(_qualified(_words_of_head(function)))


def declaration(function: Function, *, defaults: bool) -> str:
    """A one-line forward declaration of `function`, in its namespaces, with a `using` for the unqualified name."""
    groups = split_parameters(function.parameter_tokens)
    kept = groups if defaults else [_without_default(group) for group in groups]
    parameters = ", ".join(joined(_qualified(group)) for group in kept)
    text = f"{return_type(function)} {function.name}({parameters});"
    if function.c_linkage:
        text = f'extern "C" {text}'
    scopes = [scope for scope in function.scopes if scope]
    if scopes:
        nested = "::".join(scopes)
        text = f"namespace {nested} {{ {text} }} using {nested}::{function.name};"
    return text


def forwarder(name: str, target: Function) -> str:
    """A function `name` that passes its arguments on to `target`."""
    parameters: list[str] = []
    arguments: list[str] = []
    for index, group in enumerate(split_parameters(target.parameter_tokens)):
        plain = _without_default(group)
        text = joined(_qualified(plain))
        if text == "void":
            continue
        if (named := parameter_name(plain)) is None:
            named = f"argument{index}"
            text = f"{text} {named}"
        parameters.append(text)
        arguments.append(named)
    call = f"{target.qualified}({', '.join(arguments)})"
    return f"{return_type(target)} {name}({', '.join(parameters)}) {{ return {call}; }}"


_TYPE_WORDS = {
    "int", "float", "double", "bool", "char", "long", "short", "unsigned", "signed", "void", "const", "auto", "Tensor",
    "int64_t", "int32_t", "size_t", "__restrict__", "half", "uint64_t", "uint32_t", "int8_t", "uint8_t", "int16_t",
}  # fmt: skip


def parameter_name(parameter: list[Token]) -> str | None:
    """The name of a parameter, None when it has a type only."""
    names = [token for token in _without_default(parameter) if token.text != "]" and token.text != "["]
    if len(names) < 2 or names[-1].kind != "name" or names[-1].text in _TYPE_WORDS or names[-2].text == "::":
        return None
    return names[-1].text


def signature(function: Function) -> tuple[bool, str, tuple[str, ...]]:
    """Linkage, return type and parameter types in a normal form, to tell whether two declarations agree.

    Names and defaults of parameters, top-level const and the difference between `torch::` and `at::` don't count.
    """
    types: list[str] = []
    for group in split_parameters(function.parameter_tokens):
        plain = _without_default(group)
        if (name := parameter_name(plain)) is not None:
            plain = [t for i, t in enumerate(plain) if not (t.text == name and i == len(plain) - 1)]
        types.append(_normal([t.text for t in plain]))
    if types == ["void"]:
        types = []
    returned = _normal([t.text for t in _words_of_head(function)])
    return function.c_linkage, returned, tuple(types)


def _normal(words: list[str]) -> str:
    indirect = "&" in words or "*" in words
    kept = [w for w in words if not (w == "const" and not indirect)]
    while kept and kept[0] == "::":
        kept = kept[1:]
    text = " ".join(_SAME_TYPE.get(w, w) for w in kept if w != "std")
    return text.replace("at :: Tensor", "Tensor").replace(":: ", "").replace("__restrict__", "").strip()


def uses(scan: Scan, name: str) -> int | None:
    """Offset of the first place where `scan`'s text uses `name` outside of a declaration of it; None without one."""
    declared = {f.name_at for f in scan.functions if f.name == name}
    for token in scan.tokens:
        if token.kind == "name" and token.text == name and token.start not in declared:
            return token.start
    return None


def statement_begin(scan: Scan, text: str, offset: int) -> int:
    """Start of the line on which the top-level definition or block that holds `offset` begins.

    Zero when the place is inside nothing that was understood.
    """
    for item in (*scan.functions, *scan.blocks):
        if item.begin <= offset < item.end:
            if isinstance(item, Function) and (item.template or item.scopes or item.c_linkage):
                return 0
            if item.scopes:
                return 0
            return text.rfind("\n", 0, item.begin) + 1
    return 0


def externalize(text: str, function: Function) -> str:
    """`text` with the words blanked that hide `function` from the other file: `static`, `inline` and the like."""
    for token in function.head:
        if token.text in ("static", "inline", "__inline__", "__forceinline__", "constexpr"):
            text = blank(text, token.start, token.end)
    return text
