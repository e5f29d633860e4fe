"""Tells errors of the fast route that the stock one would find as well, so that nobody waits for it to find them.

An error is certain when torch's headers can have no part in it: the assembler's, the linker's about the model's own
functions, a name that those headers do not have, and bad syntax in a source whose macros are all known.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

from tools.build.calls import BuildCall
from tools.build.demangle import base_name
from tools.build.lexer import tokenize
from tools.build.names import CUDA_HEADERS, HEADERS, KnownNames
from tools.build.scanner import scan
from tools.types import Diagnostic

_AFTER_THE_HEADERS = {
    "static_shared_too_large",
    "too_many_registers",
    "unsupported_instruction",
    "unresolved_device_symbol",
    "undefined_symbol",
    "library_not_found",
}
_BY_NAME = {"undeclared_name", "dim3_in_cpp", "syntax"}
_UNDECLARED = re.compile(
    r"^'(?P<gcc>\w+)' (?:was not declared in this scope|does not name a type|has not been declared)"
    r"|^identifier \"(?P<nvcc>\w+)\" is undefined"
)
_MISSING = re.compile(r"^(?P<gcc>\S+): No such file|cannot open source file \"(?P<nvcc>[^\"]+)\"")
_HOST_FUNCTION = re.compile(
    r"__host__ function\(?[ \"]+(?P<called>[^\"]+)\".* is not allowed"
    r"|identifier \"(?P<undefined>[^\"]+)\" is undefined in device code"
)
_TORCH_HEADER = re.compile(r"#\s*include\s*[<\"]((?:torch|ATen|c10|caffe2)/[^>\"]+)")
_DEFINED = re.compile(r"^\s*#\s*define\s+(\w+)", re.MULTILINE)


def certain_errors(
    diagnostics: list[Diagnostic],
    call: BuildCall,
    *,
    thin: list[str],
    stock: list[str],
    known: Callable[[], KnownNames | None],
) -> list[Diagnostic]:
    """Those of the fast route's `diagnostics` that the stock route would give too; empty when none is sure.

    `thin` are the folders of the thin headers, `stock` those of torch's own; `known` is asked only when a name has to
    be looked up.
    """
    errors = [d for d in diagnostics if d.severity == "error"]
    own = {f.name for unit in call.units for part in unit.parts for f in scan(part.text).functions}
    sure = [d for d in errors if _sure(d, stock) or _calls_own_host_function(d, own)]
    asked = [d for d in errors if d not in sure and d.file is not None and d.code in _BY_NAME]
    if not asked or not _usual_headers(call):
        return sure
    names = known()
    if names is None:
        return sure
    syntax_is_theirs = _macros_are_known(call, thin, names)
    for diagnostic in asked:
        if match := _UNDECLARED.match(diagnostic.message):
            if not names.knows(match["gcc"] or match["nvcc"]):
                sure.append(diagnostic)
        elif diagnostic.code == "syntax" and syntax_is_theirs and "class-name" not in diagnostic.message:
            sure.append(diagnostic)
    # A name that the thin headers lack makes errors of what comes after it.
    return list(itertools.takewhile(lambda d: d in sure, errors))


def _sure(diagnostic: Diagnostic, stock: list[str]) -> bool:
    if diagnostic.code == "missing_header":
        match = _MISSING.search(diagnostic.message)
        name = (match["gcc"] or match["nvcc"]) if match else None
        return name is not None and not any((Path(folder) / name).exists() for folder in stock)
    if diagnostic.code == "bad_ptx":
        return diagnostic.file is None
    return diagnostic.code in _AFTER_THE_HEADERS


def _calls_own_host_function(diagnostic: Diagnostic, own: set[str]) -> bool:
    """Device code that calls a host function of the source itself, whatever the headers are."""
    if diagnostic.code != "host_device_call":
        return False
    match = _HOST_FUNCTION.search(diagnostic.message)
    return match is not None and base_name(match["called"] or match["undefined"]) in own


def _usual_headers(call: BuildCall) -> bool:
    """Whether `call` includes no header of torch's but those whose names were read."""
    texts = [*(part.text for unit in call.units for part in unit.parts), *(header.text for header in call.headers)]
    included = {name for text in texts for name in _TORCH_HEADER.findall(text)}
    usual = {*HEADERS, *CUDA_HEADERS, "torch/types.h", "torch/torch.h", "torch/all.h", "torch/python.h"}
    return included <= usual


def _macros_are_known(call: BuildCall, thin: list[str], names: KnownNames) -> bool:
    """Whether each macro of torch's that the source uses is one that the thin headers have."""
    used = {t.text for unit in call.units for part in unit.parts for t in tokenize(part.text) if t.kind == "name"}
    return (used & names.macros) <= _thin_macros(tuple(thin))


@lru_cache(maxsize=4)
def _thin_macros(folders: tuple[str, ...]) -> frozenset[str]:
    found: set[str] = set()
    for folder in folders:
        for path in Path(folder).rglob("*"):
            if path.is_file():
                found.update(_DEFINED.findall(path.read_text(encoding="utf-8", errors="replace")))
    return frozenset(found)
