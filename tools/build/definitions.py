"""What a C++ or CUDA source defines and declares at namespace scope: the records that `scanner.scan` fills."""

from __future__ import annotations

from dataclasses import dataclass, field

from tools.build.lexer import Token

_INTERNAL = {"static", "inline", "__inline__", "__forceinline__", "constexpr", "consteval"}
BRACKETS = {"(": ")", "[": "]", "{": "}"}


@dataclass(slots=True)
class Function:
    """A function or kernel at namespace scope. Offsets are into the text that was scanned.

    `begin` is where its specifiers start (behind `extern "C"` and `template<…>`), `name_at` the name's offset,
    `parameters` the span between the parentheses, `body` the span of the braces, None for a declaration;
    `end` lies behind the closing brace or semicolon.
    """

    name: str
    scopes: tuple[str, ...]
    begin: int
    name_at: int
    parameters: tuple[int, int]
    body: tuple[int, int] | None
    end: int
    head: list[Token]
    parameter_tokens: list[Token]
    tail: list[Token]
    template: bool = False
    extern_c: tuple[int, int] | None = None
    in_extern_block: bool = False
    text: str = field(default="", repr=False)

    @property
    def defined(self) -> bool:
        return self.body is not None

    @property
    def words(self) -> set[str]:
        return {t.text for t in self.head}

    @property
    def kernel(self) -> bool:
        return "__global__" in self.words

    @property
    def device_only(self) -> bool:
        return "__device__" in self.words and "__host__" not in self.words

    @property
    def internal(self) -> bool:
        """Not visible to another translation unit."""
        return bool(self.words & _INTERNAL) or "" in self.scopes

    @property
    def host(self) -> bool:
        """An ordinary host function that a binding can name."""
        return not (self.kernel or self.device_only or self.template)

    @property
    def c_linkage(self) -> bool:
        return self.extern_c is not None or self.in_extern_block

    @property
    def qualified(self) -> str:
        return "::".join((*(s for s in self.scopes if s), self.name))


@dataclass(slots=True)
class Block:
    """A macro with a body at namespace scope, such as `PYBIND11_MODULE(name, m) { … }`."""

    macro: str
    arguments: list[str]
    argument_spans: list[tuple[int, int]]
    begin: int
    body: tuple[int, int]
    end: int
    scopes: tuple[str, ...] = ()


@dataclass(slots=True)
class Region:
    """An `extern "C" { … }` block; `opening` is the span from `extern` to the brace, `closing` that of the other."""

    opening: tuple[int, int]
    closing: tuple[int, int]
    templates: bool


@dataclass(slots=True)
class Scan:
    """All that one text holds. `aliases` are `using` and `typedef` statements by the name that they introduce."""

    functions: list[Function] = field(default_factory=list)
    blocks: list[Block] = field(default_factory=list)
    extern_blocks: list[Region] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    using_namespaces: list[str] = field(default_factory=list)
    includes: list[str] = field(default_factory=list)
    macros: set[str] = field(default_factory=set)
    tokens: list[Token] = field(default_factory=list)

    def defined(self, name: str) -> list[Function]:
        return [f for f in self.functions if f.name == name and f.defined]

    def declared(self, name: str) -> list[Function]:
        return [f for f in self.functions if f.name == name and not f.defined]

    @property
    def device_code(self) -> bool:
        """Whether only nvcc can compile this."""
        return any(t.text in ("__global__", "<<<", "__device__", "__shared__") for t in self.tokens)


def split_parameters(tokens: list[Token]) -> list[list[Token]]:
    """The parameters of a function, one list of tokens each, split at commas outside of brackets and templates."""
    groups: list[list[Token]] = []
    current: list[Token] = []
    depth = angles = 0
    seen_equals = False
    for token in tokens:
        if token.text in BRACKETS:
            depth += 1
        elif token.text in BRACKETS.values():
            depth -= 1
        elif token.text == "=" and depth == 0:
            seen_equals = True
        elif token.text == "<" and not seen_equals:
            angles += 1
        elif token.text == ">" and not seen_equals:
            angles -= 1
        if token.text == "," and depth == 0 and angles <= 0:
            if current:
                groups.append(current)
            current, angles, seen_equals = [], 0, False
        else:
            current.append(token)
    if current:
        groups.append(current)
    return groups
