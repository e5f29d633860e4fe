"""What Python can call of an extension: the model's own module block, or one for what `functions` names."""

from __future__ import annotations

from tools.build.declarations import forwarder
from tools.build.definitions import Function
from tools.build.draft import Draft, Part, fail
from tools.build.lexer import Token, blank

PYBIND = "PYBIND11_MODULE"
LIBRARIES = ("TORCH_LIBRARY", "TORCH_LIBRARY_FRAGMENT", "TORCH_LIBRARY_IMPL")


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
    if any(_looks_defined(part.scan.tokens, name) for part in draft.parts):
        return  # behind a mistake in its source, which the compiler names: a semicolon or a brace too few
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


def _looks_defined(tokens: list[Token], name: str) -> bool:
    """Whether `name(…) {` stands somewhere."""
    texts = [t.text for t in tokens]
    for at, text in enumerate(texts[:-1]):
        if text != name or texts[at + 1] != "(":
            continue
        depth = 0
        for end in range(at + 1, len(texts)):
            depth += {"(": 1, ")": -1}.get(texts[end], 0)
            if not depth:
                if texts[end + 1 : end + 2] == ["{"]:
                    return True
                break
    return False
