"""The single repairs of plumbing, each on a `Draft`, each with a note that says what was done."""

from __future__ import annotations

import re

from tools.build.declarations import declaration, externalize, forwarder, signature, statement_begin, uses
from tools.build.definitions import Function
from tools.build.draft import Draft, Part, fail
from tools.build.lexer import Token, blank, line_of

PYBIND = "PYBIND11_MODULE"
NAMED_DIMS = frozenset(("logsumexp", "mean", "norm", "std", "std_mean", "sum", "var", "var_mean"))
"""Operators with an overload for names of dimensions, in PyTorch before 2.13."""

LIBRARIES = ("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_IMPL")


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


def settle_bindings(draft: Draft) -> None:
    """One PYBIND11_MODULE at the end: the model's own, under the right name, or one generated from `functions`."""
    own = draft.blocks(draft.parts, PYBIND)
    if not own:
        return
    kept, block = own[0]
    for part, other in own[:0:-1]:
        part.text = blank(part.text, other.begin, other.end)
        draft.note(f"a second PYBIND11_MODULE in {part.label} was left out")
    if draft.functions is not None:
        inside = kept.text[block.body[0] : block.body[1]]
        unnamed = [f for f in draft.functions if f'"{f[2] or f[0]}"' not in inside]
        missing = [f for f in unnamed if draft.defined(f[0].rsplit("::", 1)[-1], draft.parts)]
        if missing:
            variable = block.arguments[1] if len(block.arguments) > 1 else "m"
            lines = "".join(f' {variable}.def("{f[2] or f[0]}", &{f[0]});' for f in missing)
            at = block.body[1] - 1
            kept.text = kept.text[:at] + lines + " " + kept.text[at:]
            names = ", ".join(f[0] for f in missing)
            draft.note(f"{names} was added to the PYBIND11_MODULE in {kept.label}")
        draft.functions = None
        draft.note(f"functions= was left out, since {kept.label} has a PYBIND11_MODULE of its own")
    if block.arguments and block.arguments[0] not in ("TORCH_EXTENSION_NAME", draft.name):
        span = block.argument_spans[0]
        given = kept.text[slice(*span)]
        kept.text = kept.text[: span[0]] + "TORCH_EXTENSION_NAME" + kept.text[span[1] :]
        draft.note(f"PYBIND11_MODULE({given}, …) was renamed to TORCH_EXTENSION_NAME, as the module is {draft.name}")


def settle_functions(draft: Draft) -> None:
    """Decide what is bound: what `functions` names, or every host function where nothing is named."""
    own = draft.blocks(draft.parts, PYBIND)
    if own or not draft.python_module:
        return
    if draft.functions is None:
        if draft.blocks(draft.parts, *LIBRARIES):
            draft.functions = []
            return
        _bind_all(draft)
        return
    for position, (name, doc, python) in enumerate(draft.functions):
        plain = name.rsplit("::", 1)[-1]
        found = draft.defined(plain, draft.parts)
        if any(function.host for _, function in found):
            continue
        if found:
            _refuse(found[0][0], found[0][1])
        _stand_in(draft, position, plain, doc, python)


def _bind_all(draft: Draft) -> None:
    found = [f for _, f in draft.bindable() if "Tensor" in {t.text for t in (*f.head, *f.parameter_tokens)}]
    found = found or [f for _, f in draft.bindable()]
    called = [f for f in found if f.name in draft.uses] or [f for f in found if not f.internal] or found
    if not called:
        raise fail(
            "nothing_to_bind",
            f"{draft.name} defines no host function that Python could call: write one that takes and returns "
            "torch::Tensor and launches the kernel, and name it in functions=[…]",
        )
    names = list(dict.fromkeys(f.name for f in called))
    draft.functions = [(name, name, None) for name in names]
    draft.note(f"functions={names!r} was added, since nothing said what to bind")


def _refuse(part: Part, function: Function) -> None:
    if function.template:
        what = "is a template: write an ordinary function that calls it for the types you need, and name that one"
        raise fail("template_bound", f"functions names {function.name}, which {what}", part.label)
    raise fail(
        "kernel_bound",
        f"functions names {function.name}, which is device code: write a host function that takes torch::Tensor, "
        f"launches {function.name}<<<grid, block>>>(…) and returns the result, and name that one",
        part.label,
    )


def _stand_in(draft: Draft, position: int, name: str, doc: str, python: str | None) -> None:
    """`functions` names something that is not defined.

    When Python calls it by that name, and there is one function that it can mean, that one is called under the name.
    """
    assert draft.functions is not None
    if any("##" in part.text for part in draft.parts) or any(name in part.scan.macros for part in draft.parts):
        return  # a macro may define it
    taken = {f[0].rsplit("::", 1)[-1] for f in draft.functions}
    free = [f for _, f in draft.bindable() if f.name not in taken and not f.internal]
    if len(free) != 1 or name not in draft.uses or free[0].name in draft.uses:
        names = [f.name for _, f in draft.bindable()]
        known = f"defined are {', '.join(names)}" if names else "no host function is defined at all"
        raise fail(
            "binding_mismatch",
            f"functions names {name}, which no source defines; {known}. Define {name} in cpp_sources or cuda_sources, "
            "or name a function that exists in functions=[…] and call it by that name",
        )
    target = free[0]
    for other, wrong in draft.declared(name, draft.cpp):
        other.text = blank(other.text, wrong.begin, wrong.end)
    draft.cpp.append(Part("added", forwarder(name, target)))
    draft.functions[position] = (name, doc, python)
    draft.note(f"{name} is not defined; it was added to call {target.name}")


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
