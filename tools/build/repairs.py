"""The single repairs of plumbing, each on a `Draft`, each with a note that says what was done."""

from __future__ import annotations

import re

from tools.build.bindings import PYBIND
from tools.build.declarations import declaration, externalize, signature, statement_begin, uses
from tools.build.definitions import Function
from tools.build.draft import Draft, Part
from tools.build.lexer import Token, blank, line_of

NAMED_DIMS = frozenset(("logsumexp", "mean", "norm", "std", "std_mean", "sum", "var", "var_mean"))
"""Operators with an overload for names of dimensions, in PyTorch before 2.13."""


def drop_copies(draft: Draft) -> None:
    """The same text passed twice counts once: CUDA where it holds device code, else C++."""
    for part in list(draft.cpp):
        twin = next((p for p in draft.cuda if p.text.strip() == part.text.strip()), None)
        if twin is None:
            continue
        if twin.scan.device_code or len(draft.cuda) > 1:
            draft.cpp.remove(part)
            draft.note(f"{part.label} repeats {twin.label} and was left out")
        else:
            draft.cuda.remove(twin)
            draft.note(f"{twin.label} repeats {part.label}, has no device code and was left out")
    for side in (draft.cpp, draft.cuda):
        seen: set[str] = set()
        for part in list(side):
            if part.text.strip() in seen:
                side.remove(part)
                draft.note(f"{part.label} repeats an earlier source and was left out")
            seen.add(part.text.strip())


def move_device_code(draft: Draft) -> None:
    """Kernels and launches in `cpp_sources` go to nvcc; a binding among them stays with the C++ compiler."""
    for part in list(draft.cpp):
        if not part.scan.device_code:
            continue
        draft.cpp.remove(part)
        for block in reversed(part.scan.blocks):
            if block.macro == PYBIND:
                line = line_of(part.text, block.begin)
                draft.cpp.append(Part(part.label, part.text[block.begin : block.end], line))
                part.text = blank(part.text, block.begin, block.end)
        if _repeated(part, draft.cuda):
            draft.note(f"{part.label} repeats what cuda_sources define and was left out")
            continue
        draft.cuda.append(part)
        draft.note(f"{part.label} holds CUDA code and was compiled as cuda_sources")


def _repeated(part: Part, others: list[Part]) -> bool:
    """Whether all that `part` defines is defined in `others`, word for word."""

    def words(source: Part, function: Function) -> list[str]:
        return [t.text for t in source.scan.tokens if function.begin <= t.start < function.end]

    mine = [f for f in part.scan.functions if f.defined]
    there = [words(other, f) for other in others for f in other.scan.functions if f.defined]
    return bool(mine) and all(words(part, f) in there for f in mine)


def lift_extern_c(draft: Draft) -> None:
    """`extern "C" { … }` round templates can't compile: the linkage is dropped."""
    for part in draft.parts:
        for region in part.scan.extern_blocks:
            if region.templates:
                part.text = blank(blank(part.text, *region.opening), *region.closing)
                draft.note(f'extern "C" round templates in {part.label} was dropped')


def spell_out_dims(draft: Draft) -> None:
    """`x.sum({0, 1})` says `at::IntArrayRef{0, 1}`: PyTorch before 2.13 also has an overload for names of dimensions,
    and a pair that begins with the literal 0 could be its null pointer and length."""
    for part in draft.parts:
        places = _pairs_of_dims(part.scan.tokens)
        for place in reversed(places):
            part.text = part.text[:place] + "at::IntArrayRef" + part.text[place:]
        if places:
            draft.note(f"dimensions such as {{0, 1}} in {part.label} are written as at::IntArrayRef{{0, 1}}")


def _pairs_of_dims(tokens: list[Token]) -> list[int]:
    """Where a `{0, n}` begins that is an argument of a torch function which also takes names of dimensions."""
    calls: list[int] = []
    found: list[int] = []
    for at, token in enumerate(tokens):
        if token.text == "(":
            calls.append(at)
        elif token.text == ")" and calls:
            calls.pop()
        elif token.text == "{" and calls and tokens[at - 1].text in ("(", ","):
            end = next((i for i in range(at, len(tokens)) if tokens[i].text == "}"), at)
            inside = [t.text for t in tokens[at + 1 : end]]
            name, before = tokens[calls[-1] - 1].text, tokens[calls[-1] - 2].text
            if inside[:1] == ["0"] and inside.count(",") == 1 and name in NAMED_DIMS and before in (".", "->", "::"):
                found.append(token.start)
    return found


def declare(draft: Draft) -> None:
    """Forward declarations in C++ for what `cuda_sources` define and `cpp_sources` name."""
    bound = {f[0].rsplit("::", 1)[-1] for f in draft.functions or []}
    names = dict.fromkeys(f.name for part in draft.cuda for f in part.scan.functions if f.defined and f.host)
    for name in names:
        used = [(part, at) for part in draft.cpp if (at := uses(part.scan, name)) is not None]
        if name not in bound and not used:
            continue
        if draft.defined(name, draft.cpp):
            _drop_double(draft, name)
            continue
        part, function = next((p, f) for p, f in draft.defined(name, draft.cuda) if f.host)
        if function.internal and "" not in function.scopes:
            _export(draft, part, function)
            function = part.scan.defined(name)[0]
        if draft.declared(name, draft.headers):
            continue
        declared = draft.declared(name, draft.cpp)
        overloads = draft.defined(name, draft.cuda)
        if declared and len(overloads) == 1 and all(signature(f) != signature(function) for _, f in declared):
            for other, wrong in declared:
                begin = wrong.extern_c[0] if wrong.extern_c else wrong.begin
                other.text = blank(other.text, begin, wrong.end)
            draft.note(f"the declaration of {name} in cpp_sources differs from its definition and was replaced")
            declared = []
        if not declared:
            _declare_one(draft, function, used[0] if used else None)


def _declare_one(draft: Draft, function: Function, used: tuple[Part, int] | None) -> None:
    text = declaration(function, defaults=used is not None)
    if text in draft.declarations:
        return
    # A bare Tensor is written out (`declaration` does the same), so that no `using` for it is needed.
    needed = [
        re.sub(r"(?<![\w:])Tensor\b", "torch::Tensor", statement)
        for part in draft.cuda
        for alias, statement in part.scan.aliases.items()
        if alias != "Tensor" and alias in {t.text for t in (*function.head, *function.parameter_tokens)}
    ]
    for statement in needed:
        if statement not in draft.declarations:
            draft.declarations.append(statement)
    if {"cudaStream_t", "dim3"} & {t.text for t in function.parameter_tokens}:
        draft.declarations.insert(0, "#include <cuda_runtime.h>")
    draft.declarations.append(text)
    if used is not None:
        _cut_before(draft, *used)
    draft.note(f"declared in cpp_sources: {text}")


def _cut_before(draft: Draft, part: Part, offset: int) -> None:
    """Declarations stand before the definition that uses them, behind the includes and types above it."""
    cut = statement_begin(part.scan, part.text, offset)
    index = draft.cpp.index(part)
    if draft.declare_at is not None and draft.declare_at <= index:
        return
    if cut == 0:
        draft.declare_at = index
        return
    head = Part(part.label, part.text[: cut - 1], part.line)
    tail = Part(part.label, part.text[cut:], part.line + line_of(part.text, cut) - 1)
    draft.cpp[index : index + 1] = [head, tail]
    draft.declare_at = index + 1


def _export(draft: Draft, part: Part, function: Function) -> None:
    changed = externalize(part.text, function)
    if changed != part.text:
        part.text = changed
        draft.note(f"{function.name} in {part.label} was made visible outside of its file (static or inline dropped)")


def _drop_double(draft: Draft, name: str) -> None:
    """A function that both sides define alike is kept on the CUDA side."""
    cpp_part, here = draft.defined(name, draft.cpp)[0]
    cuda_part, there = draft.defined(name, draft.cuda)[0]
    if here.internal or there.internal or signature(here) != signature(there):
        return
    mine = [t.text for t in cpp_part.scan.tokens if here.begin <= t.start < here.end]
    other = [t.text for t in cuda_part.scan.tokens if there.begin <= t.start < there.end]
    if mine == other and here.body is not None:
        at = here.body[0]
        text = blank(cpp_part.text, *here.body)
        cpp_part.text = text[:at] + ";" + text[at + 1 :]
        draft.note(f"{name} is defined in both sources; the one in {cpp_part.label} became a declaration")
