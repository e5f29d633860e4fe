"""Reads functions, kernels, macro blocks and aliases off the tokens of a C++ or CUDA source."""

from __future__ import annotations

from tools.build.definitions import BRACKETS, Block, Function, Region, Scan, split_parameters
from tools.build.lexer import Token, tokenize

_NOT_A_NAME = {
    "__attribute__", "__launch_bounds__", "__align__", "alignas", "decltype", "noexcept", "__declspec", "asm",
    "__asm__", "if", "for", "while", "switch", "return", "sizeof", "operator", "__cluster_dims__", "throw", "requires",
    "explicit", "__maxnreg__", "__block_size__",
}  # fmt: skip
_AFTER_PARAMETERS = {
    "const",
    "volatile",
    "noexcept",
    "override",
    "final",
    "throw",
    "__attribute__",
    "requires",
    "&",
    "&&",
}


def scan(text: str) -> Scan:
    """Read `text`. Never fails: what it does not understand it passes over, and leaves to the compiler."""
    return _Scanner(text).run()


class _Scanner:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = tokenize(text)
        self.at = 0
        self.result = Scan(tokens=self.tokens)
        # One entry per open brace at namespace scope: a namespace's name, or None for an extern "C" block.
        self.scopes: list[str | None] = []
        self.open_externs: list[tuple[tuple[int, int], int]] = []

    def run(self) -> Scan:
        while self.at < len(self.tokens):
            self.statement()
        return self.result

    def peek(self, ahead: int = 0) -> str:
        index = self.at + ahead
        return self.tokens[index].text if index < len(self.tokens) else ""

    def statement(self) -> None:
        token = self.tokens[self.at]
        if token.kind == "directive":
            self.directive(token)
            self.at += 1
        elif token.text == "}":
            self.close_scope(token)
            self.at += 1
        elif token.text == ";":
            self.at += 1
        elif token.text == "namespace" or (token.text == "inline" and self.peek(1) == "namespace"):
            self.namespace()
        elif token.text == "extern" and self.peek(1) == '"C"' and self.peek(2) == "{":
            brace = self.tokens[self.at + 2]
            self.open_externs.append(((token.start, brace.end), len(self.result.functions)))
            self.scopes.append(None)
            self.at += 3
        elif token.text in ("using", "typedef"):
            self.alias(token)
        elif token.text in ("static_assert", "asm", "friend"):
            self.skip_to_semicolon()
        else:
            self.declaration()

    def directive(self, token: Token) -> None:
        words = token.text.lstrip("#").split(None, 2)
        if words[:1] == ["include"] and len(words) > 1:
            self.result.includes.append(" ".join(words[1:]))
        elif words[:1] == ["define"] and len(words) > 1:
            self.result.macros.add(words[1].split("(")[0])

    def namespace(self) -> None:
        names: list[str] = []
        while self.at < len(self.tokens) and self.peek() not in ("{", ";", "="):
            if self.tokens[self.at].kind == "name" and self.peek() not in ("namespace", "inline"):
                names.append(self.peek())
            self.at += 1
        if self.peek() == "{":
            self.scopes.append("::".join(names))
            self.at += 1
        else:
            self.skip_to_semicolon()

    def close_scope(self, token: Token) -> None:
        if self.scopes and self.scopes.pop() is None and self.open_externs:
            opening, first = self.open_externs.pop()
            templates = any(f.template for f in self.result.functions[first:])
            self.result.extern_blocks.append(Region(opening, (token.start, token.end), templates))

    def alias(self, token: Token) -> None:
        first = self.at
        self.skip_to_semicolon()
        statement = self.tokens[first : self.at]
        if len(statement) < 3 or self.scopes:
            return
        text = self.text[token.start : statement[-1].end]
        words = [t.text for t in statement]
        if words[:2] == ["using", "namespace"]:
            self.result.using_namespaces.append(text)
        elif words[0] == "using" and words[2] == "=":
            self.result.aliases[words[1]] = text
        elif words[0] == "using" or (words[0] == "typedef" and "{" not in words and "(" not in words):
            self.result.aliases[words[-2]] = text

    def skip_to_semicolon(self) -> None:
        while self.at < len(self.tokens):
            word = self.peek()
            if word in BRACKETS:
                self.skip_pair()
                continue
            self.at += 1
            if word == ";":
                return

    def skip_pair(self) -> None:
        """Move behind the bracket that closes the one at `at`; to the end of the text if none does."""
        closing: list[str] = []
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            self.at += 1
            if token.kind != "punct":
                continue
            if token.text in BRACKETS:
                closing.append(BRACKETS[token.text])
            elif closing and token.text == closing[-1]:
                closing.pop()
                if not closing:
                    return

    def skip_angles(self) -> None:
        """Move behind the `>` that closes the `<` at `at`."""
        depth = 0
        while self.at < len(self.tokens):
            word = self.peek()
            if word in BRACKETS:
                self.skip_pair()
                continue
            if word in (";", "}"):
                return
            self.at += 1
            if word == "<":
                depth += 1
            elif word == ">":
                depth -= 1
                if depth == 0:
                    return

    def declaration(self) -> None:
        """One declaration or definition: a function, a type, a variable, or a macro with a body."""
        template = False
        extern_c: tuple[int, int] | None = None
        while True:
            if self.peek() == "template":
                self.at += 1
                template = True
                if self.peek() == "<":
                    self.skip_angles()
            elif self.peek() == "extern" and self.peek(1) == '"C"':
                extern_c = (self.tokens[self.at].start, self.tokens[self.at + 1].end)
                self.at += 2
            else:
                break
        first = self.at
        while self.at < len(self.tokens):
            token = self.tokens[self.at]
            if token.kind == "directive":
                self.directive(token)
                self.at += 1
                first = self.at if self.at == first + 1 else first
            elif token.text == ";":
                self.at += 1
                return
            elif token.text == "}":
                return  # of the enclosing scope
            elif token.text == "{":
                # A type's body, a braced initialiser, or something unknown.
                self.skip_pair()
                if self.tokens[first].text not in ("struct", "class", "union", "enum"):
                    return
            elif token.text == "=":
                self.skip_to_semicolon()
                return
            elif token.text == "(":
                if self.function(first, template, extern_c):
                    return
            elif token.text == "[":
                self.skip_pair()
            elif token.text == "<" and self.tokens[self.at - 1].kind == "name" and self.at > first:
                self.skip_angles()
            else:
                self.at += 1

    def function(self, first: int, template: bool, extern_c: tuple[int, int] | None) -> bool:
        """At a parenthesis: record what it belongs to. True when the statement is finished."""
        opening = self.at
        name = self.tokens[opening - 1] if opening > first else None
        self.skip_pair()
        if name is None or name.kind != "name" or name.text in _NOT_A_NAME:
            return False
        parameters = self.tokens[opening + 1 : self.at - 1]
        closing = self.tokens[self.at - 1]
        if opening - 1 == first:
            return self.macro(name, parameters, closing)
        tail_from = self.at
        while self.at < len(self.tokens) and self.peek() in _AFTER_PARAMETERS:
            self.at += 1
            if self.peek() == "(":
                self.skip_pair()
        if self.peek() == "->":
            while self.at < len(self.tokens) and self.peek() not in ("{", ";"):
                self.skip_angles() if self.peek() == "<" else self.advance()
        if self.peek() not in ("{", ";"):
            # `= default`, a constructor's initialisers, or a variable such as `dim3 grid(4);` met in pieces.
            return False
        tail = self.tokens[tail_from : self.at]
        body: tuple[int, int] | None = None
        if self.peek() == "{":
            begin = self.tokens[self.at].start
            self.skip_pair()
            body = (begin, self.tokens[self.at - 1].end)
        else:
            self.at += 1
        name_index = opening - 1
        scopes = tuple(s for s in self.scopes if s is not None)
        while name_index - 2 >= first and self.tokens[name_index - 1].text == "::":
            scopes = (*scopes, self.tokens[name_index - 2].text)
            name_index -= 2
        if name_index == first:
            return True  # a constructor or a destructor
        self.result.functions.append(
            Function(
                name=name.text,
                scopes=scopes,
                begin=self.tokens[first].start,
                name_at=name.start,
                parameters=(self.tokens[opening].end, closing.start),
                body=body,
                end=self.tokens[self.at - 1].end,
                head=self.tokens[first:name_index],
                parameter_tokens=parameters,
                tail=tail,
                template=template,
                extern_c=extern_c,
                in_extern_block=any(s is None for s in self.scopes),
                text=self.text,
            )
        )
        return True

    def advance(self) -> None:
        self.at += 1

    def macro(self, name: Token, arguments: list[Token], closing: Token) -> bool:
        """`NAME(…)` that opens a statement: with a body it is a block, else a macro call, over either way."""
        if self.peek() != "{":
            if self.peek() == ";":
                self.at += 1
            return True
        begin = self.tokens[self.at].start
        self.skip_pair()
        spans = _split(arguments)
        self.result.blocks.append(
            Block(
                macro=name.text,
                arguments=[self.text[a:b] for a, b in spans],
                argument_spans=spans,
                begin=name.start,
                body=(begin, self.tokens[self.at - 1].end),
                end=self.tokens[self.at - 1].end,
                scopes=tuple(s for s in self.scopes if s is not None),
            )
        )
        return True


def _split(tokens: list[Token]) -> list[tuple[int, int]]:
    """Spans of the comma-separated arguments."""
    spans: list[tuple[int, int]] = []
    for group in split_parameters(tokens):
        spans.append((group[0].start, group[-1].end))
    return spans
