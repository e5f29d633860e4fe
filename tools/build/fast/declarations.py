"""The declarations of torch's operators, read as text from the headers of the installed torch.

A source names the operators that it calls. For those names this finds torch's own C++ declarations, with their types
and default arguments, and gives them bodies that call the dispatcher through the bridge. So every overload is the one
that the stock route would see, in any version of torch, and the compiler reads no operator that the source lacks.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

# Overloads that torch writes by hand beside the generated ones. None may be missed: without var(int) a call var(0)
# would quietly mean var(unbiased=false).
_HAND_WRITTEN_METHOD = re.compile(
    r"^  (?:inline )?Tensor (?P<name>var|std|to)\([^\n]*\) const \{\n.*?^  \}\n", re.MULTILINE | re.DOTALL
)
_HAND_WRITTEN_FUNCTION = re.compile(
    r"^inline [\w:<>, ]+ (?P<name>\w+)\([^\n]*\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)
# What the thin headers cannot pass along: overloads that take these are left out.
_UNKNOWN_TYPES = re.compile(
    r"SymInt|SymBool|Dimname|Storage|at::Stream|QScheme|c10::List|Quantizer|(?<!optional<)at::Generator"
)
_FUNCTION = re.compile(
    r"^// aten::(?P<op>[\w.]+)\(.*\n"
    r"inline (?P<result>[^\n(]+?) (?P<name>\w+)\((?P<parameters>[^\n]*)\) \{\n"
    r"    return at::_ops::\w+::call\((?P<arguments>[^\n]*)\);\n\}",
    re.MULTILINE,
)
_METHOD = re.compile(
    r"^// aten::(?P<op>[\w.]+)\(.*\n"
    r"inline (?P<result>[^\n(]+?) Tensor::(?P<name>\w+)\((?P<parameters>[^\n]*)\) const \{\n"
    r"    return at::_ops::\w+::call\((?P<arguments>[^\n]*)\);\n\}",
    re.MULTILINE,
)
_METHOD_DECLARATION = re.compile(r"^  (?P<text>[\w:<>,& ]+?[ &](?P<name>\w+)\([^\n]*\) const;)$", re.MULTILINE)
_FACTORY = re.compile(
    r"^inline at::Tensor (?P<name>\w+)\((?P<parameters>[^\n]*)\) \{\n.*?^\}\n", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True, slots=True)
class Declared:
    """C++ text for the operators that a source names: inside class Tensor, in namespace at, in namespace torch."""

    methods: str
    functions: str
    factories: str


@dataclass(frozen=True, slots=True)
class _Methods:
    declarations: dict[str, list[str]]
    definitions: dict[str, list[str]]


def declare(include: Path, names: set[str]) -> Declared:
    """Declarations of every operator and factory of the torch headers in `include` whose name is in `names`."""
    methods = _methods(include)
    factories = _factories(include)
    chosen = sorted(names)
    functions = [text for name in chosen for text in _functions(include, name)]
    functions += [text for name in chosen for text in _hand_written(include).get(name, [])]
    return Declared(
        methods="\n".join(text for name in chosen for text in methods.declarations.get(name, [])),
        functions="\n".join(functions + [text for name in chosen for text in methods.definitions.get(name, [])]),
        factories="\n".join(text for name in chosen for text in factories.get(name, [])),
    )


@lru_cache(maxsize=512)
def _functions(include: Path, name: str) -> tuple[str, ...]:
    """The free functions of operator `name`; `add_out` and `add_outf` are found under `add`."""
    base = re.sub(r"_outf?$", "", name)
    for stem in dict.fromkeys((name, base, base.removesuffix("_"))):
        path = include / "ATen" / "ops" / f"{stem}.h"
        if path.is_file():
            text = path.read_text(encoding="utf-8")
            found = [_definition(m, m["name"]) for m in _FUNCTION.finditer(text) if m["name"] == name and _known(m)]
            if found:
                return tuple(found)
    return ()


@lru_cache(maxsize=2)
def _methods(include: Path) -> _Methods:
    text = (include / "ATen" / "core" / "TensorBody.h").read_text(encoding="utf-8")
    declarations: dict[str, list[str]] = {}
    definitions: dict[str, list[str]] = {}
    by_hand: dict[str, list[str]] = {}
    start = text.index("class TORCH_API Tensor")
    end = text.index("\n};", start)
    for m in _METHOD_DECLARATION.finditer(text, start, end):
        if not _UNKNOWN_TYPES.search(m["text"]) and m["name"] not in _OURS:
            declarations.setdefault(m["name"], []).append(m["text"])
    for m in _HAND_WRITTEN_METHOD.finditer(text, start, end):
        by_hand.setdefault(m["name"], []).append(m[0].rstrip())
    for m in _METHOD.finditer(text):
        if _known(m) and m["name"] in declarations:
            body = _definition(m, f"Tensor::{m['name']}", const=True)
            definitions.setdefault(m["name"], []).append(body)
    # A declaration without its definition would link against nothing.
    whole = {n for n, texts in declarations.items() if len(definitions.get(n, [])) == len(texts)}
    return _Methods(
        {n: t + by_hand.get(n, []) for n, t in declarations.items() if n in whole},
        {n: t for n, t in definitions.items() if n in whole},
    )


@lru_cache(maxsize=2)
def _hand_written(include: Path) -> dict[str, list[str]]:
    """Functions of ATen/Functions.h that are no operators, such as numel(tensor)."""
    found: dict[str, list[str]] = {}
    for m in _HAND_WRITTEN_FUNCTION.finditer((include / "ATen" / "Functions.h").read_text(encoding="utf-8")):
        if m["name"] not in {"_is_zerotensor", "conj"}:
            found.setdefault(m["name"], []).append(m[0].rstrip())
    return found


# Methods that the thin Tensor has by itself.
_OURS = {"item", "is_complex", "is_floating_point", "contiguous", "data", "is_leaf", "_version", "requires_grad_"}


@lru_cache(maxsize=2)
def _factories(include: Path) -> dict[str, list[str]]:
    path = include / "torch" / "csrc" / "autograd" / "generated" / "variable_factories.h"
    found: dict[str, list[str]] = {}
    for m in _FACTORY.finditer(path.read_text(encoding="utf-8")):
        if m["name"] not in {"tensor", "from_blob"} and not _UNKNOWN_TYPES.search(m["parameters"]):
            found.setdefault(m["name"], []).append(m[0])
    return found


def _known(match: re.Match[str]) -> bool:
    return not _UNKNOWN_TYPES.search(match["result"]) and not _UNKNOWN_TYPES.search(match["parameters"])


def _definition(match: re.Match[str], name: str, *, const: bool = False) -> str:
    op, _, overload = match["op"].partition(".")
    result = match["result"]
    # A SymInt that holds a plain number is that number.
    arguments = ", ".join(["kfast_op", *filter(None, [match["arguments"].replace("c10::SymInt(", "int64_t(")])])
    return (
        f"inline {result} {name}({match['parameters']}){' const' if const else ''} {{\n"
        f'  static void* const kfast_op = kf_find_operator("aten::{op}", "{overload}");\n'
        f"  return ::kfast::call<{result}>({arguments});\n}}"
    )
