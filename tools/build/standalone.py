"""Makes a candidate's file build with a plain PyTorch: what our build supplied is written into its calls."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tools.build.calls import BuildCall, CaughtCall, Unit
from tools.build.flags import split_flags
from tools.build.render import render
from tools.build.syntax import parse

_POSITIONS = ("name", "cpp_sources", "cuda_sources", "sycl_sources", "functions", "extra_cflags", "extra_cuda_cflags")
_FLAGS = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")


def completed(source: str, pairs: Sequence[tuple[CaughtCall, BuildCall]]) -> str:
    """`source` with each call that a plain `load_inline` would not build completed; unchanged where none needs it.

    `pairs` are the caught calls and what plumbing made of them. Arguments are changed where they are written; a call
    that runs several times, or takes its arguments from elsewhere, is completed by a few lines at the top of the file.
    """
    needed = [(caught, call) for caught, call in pairs if differs(caught, call)]
    if not needed:
        return source
    edits: list[_Edit] = []
    tree = parse(source)
    for caught, call in needed:
        node = _node_of(tree, caught)
        alone = sum(other.line == caught.line for other, _ in pairs) == 1
        made = _edits(source, node, caught, call) if node is not None and alone else None
        if made is None:
            return with_preamble(source, pairs)
        edits += made
    return _apply(source, edits)


def differs(caught: CaughtCall, call: BuildCall) -> bool:
    """Whether torch's own `load_inline` would build something else from the call as given, or nothing at all."""
    if caught.kind != "load_inline":
        return False
    return bool(_changes(caught, call))


def _changes(caught: CaughtCall, call: BuildCall) -> dict[str, Any]:
    """Arguments that must be given otherwise, by name, with the value to give."""
    given = caught.arguments
    changes: dict[str, Any] = {}
    if caught.name != call.name:
        changes["name"] = call.name
    ours = {unit.filename: render(call, unit).text for unit in call.units}
    plain = None if {"cpp_sources", "cuda_sources", "functions"} & set(caught.tuples) else _plain_files(given)
    if plain is None or plain != ours:
        main = next(unit for unit in call.units if unit.language == "cpp")
        cuda = next((unit for unit in call.units if unit.language == "cuda"), None)
        changes["cpp_sources"] = _texts(main)
        changes["cuda_sources"] = _texts(cuda) if cuda else None
        changes["functions"] = None if call.bindings is None else _functions(call)
        for name in ("cuda_sources", "functions", "cpp_sources"):
            required = name == "cpp_sources" and given.get(name) is None
            if _listed(given.get(name)) == _listed(changes[name]) and name not in caught.tuples and not required:
                del changes[name]
    for name, flags in zip(_FLAGS, (call.cflags, call.cuda_cflags, call.ldflags), strict=True):
        if split_flags(given.get(name)) != flags or isinstance(given.get(name), str):
            changes[name] = flags or None
    if given.get("sycl_sources") is not None:
        changes["sycl_sources"] = None
        changes.setdefault("functions", None if call.bindings is None else _functions(call))
    if call.with_cuda and not call.cuda_units and given.get("with_cuda") is not True:
        changes["with_cuda"] = True
    elif call.cuda_units and given.get("with_cuda") is False:
        changes["with_cuda"] = None
    return changes


def _listed(value: Any) -> list[Any]:
    if value is None or value == "":
        return []
    return list(value) if isinstance(value, (list, tuple, dict)) else [value]


def _plain_files(given: dict[str, Any]) -> dict[str, str] | None:
    """The files that torch would write, None where it would raise."""
    cpp, cuda = given.get("cpp_sources"), given.get("cuda_sources") or []
    cpp = [cpp] if isinstance(cpp, str) else cpp
    cuda = [cuda] if isinstance(cuda, str) else cuda
    functions = given.get("functions")
    functions = [functions] if isinstance(functions, str) else functions
    if not isinstance(cpp, list) or not isinstance(cuda, list) or not all(isinstance(t, str) for t in [*cpp, *cuda]):
        return None
    headers = given.get("no_implicit_headers") is not True
    lines = ["#include <torch/extension.h>"] if headers else []
    lines += cpp
    if functions is not None:
        if not isinstance(functions, (list, dict)):
            return None
        wrapped = given.get("with_pytorch_error_handling") is not False
        named = functions if isinstance(functions, dict) else {f: f for f in functions}
        lines.append("PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {")
        for name, doc in named.items():
            target = f"torch::wrap_pybind_function({name})" if wrapped else name
            lines.append(f'm.def("{name}", {target}, "{doc}");')
        lines.append("}")
    files = {"main.cpp": "\n".join(lines)}
    if cuda:
        implicit = ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>"] if headers else []
        files["cuda.cu"] = "\n".join([*implicit, *cuda])
    return files


def _texts(unit: Unit) -> list[str]:
    """The unit's parts and declarations in order, as a list that torch joins by line breaks."""
    texts = [part.text for part in unit.parts]
    at = min(unit.declare_at, len(texts))
    return [*texts[:at], *(["\n".join(unit.declarations)] if unit.declarations else []), *texts[at:]]


def _functions(call: BuildCall) -> list[str]:
    return [binding.name for binding in call.bindings or []]


@dataclass(frozen=True, slots=True)
class _Edit:
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


def _node_of(tree: ast.Module, caught: CaughtCall) -> ast.Call | None:
    """The one call of `load_inline`, under whatever name, that stands at the line where it was caught."""
    if caught.line is None:
        return None
    keywords = {"cpp_sources", "cuda_sources", "functions"}
    found = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and node.lineno <= caught.line <= (node.end_lineno or node.lineno)
        and (keywords & {k.arg for k in node.keywords} or len(node.args) >= 3)
    ]
    if len(found) != 1 or any(isinstance(a, ast.Starred) for a in found[0].args):
        return None
    return None if any(k.arg is None for k in found[0].keywords) else found[0]


def _edits(source: str, node: ast.Call, caught: CaughtCall, call: BuildCall) -> list[_Edit] | None:
    edits: list[_Edit] = []
    extra: list[str] = []
    for name, value in _changes(caught, call).items():
        expression = _expression_of(node, name)
        if expression is None:
            extra.append(f"{name}={_written(value)}")
            continue
        text = ast.get_source_segment(source, expression)
        extended = text is not None and name.endswith("_sources")
        replacement = _extended(text or "", caught.arguments.get(name), value) if extended else _written(value)
        end = (expression.end_lineno or 0, expression.end_col_offset or 0)
        edits.append(_Edit((expression.lineno, expression.col_offset), end, replacement))
    if extra:
        last = [*node.args, *(k.value for k in node.keywords)][-1]
        end = (last.end_lineno or 0, last.end_col_offset or 0)
        edits.append(_Edit(end, end, "".join(f", {e}" for e in extra)))
    return edits


def _expression_of(node: ast.Call, name: str) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg == name:
            return keyword.value
    position = _POSITIONS.index(name) if name in _POSITIONS else len(node.args)
    return node.args[position] if position < len(node.args) else None


def _extended(text: str, given: Any, value: Any) -> str:
    """The argument as it was written with texts put before or behind it, where that is all; else written anew."""
    old = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else None
    if old and all(isinstance(t, str) and t.strip() for t in old) and isinstance(value, list):
        new: list[str] = list(value)
        kept = text if isinstance(given, str) else f"*{text}"
        if new[: len(old)] == old:
            return f"[{', '.join([kept, *(_written(t) for t in new[len(old) :])])}]"
        if new[-len(old) :] == old:
            return f"[{', '.join([*(_written(t) for t in new[: -len(old)]), kept])}]"
    return _written(value)


def _written(value: Any) -> str:
    """A Python literal; long texts as raw strings over several lines, where they can be."""
    if isinstance(value, list):
        items: list[Any] = list(value)
        if len(items) == 1 and isinstance(items[0], str) and "\n" in items[0]:
            return _written(items[0])
        return f"[{', '.join(_written(item) for item in items)}]"
    if isinstance(value, str) and "\n" in value:
        if '"""' not in value and not value.endswith(("\\", '"')) and "\r" not in value:
            return f'r"""{value}"""'
        return repr(value)
    return repr(value)


def _apply(source: str, edits: list[_Edit]) -> str:
    """`source` with the edits made; their columns count UTF-8 bytes, as the ast module's do."""
    lines = source.encode("utf-8").splitlines(keepends=True)
    starts = [0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    data = b"".join(lines)
    for edit in sorted(edits, key=lambda e: e.start, reverse=True):
        begin = starts[edit.start[0] - 1] + edit.start[1]
        end = starts[edit.end[0] - 1] + edit.end[1]
        data = data[:begin] + edit.text.encode("utf-8") + data[end:]
    return data.decode("utf-8")


_PREAMBLE = """# Arguments of load_inline, completed so that this file builds with PyTorch alone.
import torch.utils.cpp_extension as _cpp_extension

_COMPLETED = {completed}


def _completed_load_inline(name, *args, _plain=_cpp_extension.load_inline, **kwargs):
    return _plain(**_COMPLETED[name].pop(0)) if _COMPLETED.get(name) else _plain(name, *args, **kwargs)


_cpp_extension.load_inline = _completed_load_inline

"""


def with_preamble(source: str, pairs: Sequence[tuple[CaughtCall, BuildCall]]) -> str:
    """`source` behind a few lines that complete its calls, by name and in order, when they are made."""
    calls: dict[str, list[dict[str, Any]]] = {}
    for caught, call in pairs:
        arguments = {"name": call.name, **caught.arguments, **_changes(caught, call)}
        calls.setdefault(caught.name, []).append({k: v for k, v in arguments.items() if v is not None})
    text = _PREAMBLE.replace("{completed}", repr(calls))
    future = [n for n in parse(source).body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    at = max((n.end_lineno or 0 for n in future), default=0)
    lines = source.splitlines(keepends=True)
    return "".join([*lines[:at], text, *lines[at:]])
