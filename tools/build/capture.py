"""Runs in a sandboxed child: executes a candidate with `load_inline` and `load` replaced by recorders.

Nothing is compiled here and nothing that it says is trusted: what comes back are texts to compile, or a Python error.
"""

from __future__ import annotations

import ast
import contextlib
import inspect
import linecache
import socket
import sys
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tools.build.calls import fingerprint, plain
from tools.build.pretence import NoDeviceHere, pretend_cuda
from tools.build.pyerrors import python_error
from tools.build.sources import HEADER_SUFFIXES
from tools.channel import MAX_BYTES, send_json
from tools.sandbox import lock_down

CANDIDATE_FILE = "candidate.py"
_MOST_FILES = 64
_LARGEST_FILE = 1 << 20


def main(sock: socket.socket, args: dict[str, Any], _fds: list[int]) -> None:
    """Answer on `sock` with `calls` (a list of `CaughtCall` as JSON), `error` (a Diagnostic) and `has_model`.

    `args`: `source`, `init_args` (a list, or None when they are not known), `properties` of the CUDA device, None
    where the target is the CPU, and the `module` that the file is to be, where it is no candidate.
    """
    module = args.get("module", "candidate")
    reply = capture(args["source"], args["init_args"], args["properties"], confine=lock_down, module_name=module)
    try:
        send_json(sock, reply, timeout=30)
    except ValueError:
        message = f"the texts given to load_inline are larger than {MAX_BYTES >> 20} MiB together: make them smaller"
        error = {"severity": "error", "code": "too_large", "message": message}
        send_json(sock, {"calls": [], "error": error, "has_model": True}, timeout=30)


def capture(
    source: str,
    init_args: list[Any] | None,
    properties: dict[str, Any] | None,
    *,
    confine: Callable[[], None],
    module_name: str = "candidate",
) -> dict[str, Any]:
    """Run the candidate up to the construction of its model and return what it asked to build.

    `confine` is called before any of its code runs.
    """
    import torch.utils.cpp_extension as cpp_extension

    recorder = _Recorder(cpp_extension)
    module = types.ModuleType(module_name)
    module.__file__ = CANDIDATE_FILE
    linecache.cache[CANDIDATE_FILE] = (len(source), None, source.splitlines(keepends=True), CANDIDATE_FILE)
    sys.modules[module_name] = module
    cpp_extension.load_inline = recorder.replacement("load_inline")
    cpp_extension.load = recorder.replacement("load")
    if properties is not None:
        pretend_cuda(properties)
    confine()
    error: dict[str, Any] | None = None
    stopped_early = False
    try:
        code = compile(source, CANDIDATE_FILE, "exec")
        exec(code, module.__dict__)
        model = module.__dict__.get("ModelNew")
        if isinstance(model, type) and _calls_in_text(source) > len(recorder.calls):
            recorder.where = "construction"
            model(*(init_args or []))
    except BaseException as raised:
        # After a stub stood in for a library, what the candidate computes means nothing, and neither do its errors.
        # Nor does it when it goes on to use a GPU.
        went_on = recorder.calls and (recorder.stub_used or isinstance(raised, NoDeviceHere))
        stopped_early = bool(went_on)
        constructing = recorder.where == "construction" and (recorder.calls or init_args is None)
        if not (went_on or constructing):
            error = python_error(raised, source, CANDIDATE_FILE)
    # A file that stopped early for such an error has not come to its class yet.
    has_model = "ModelNew" in module.__dict__ or (stopped_early and "class ModelNew" in source)
    return {"calls": recorder.calls, "error": error, "has_model": has_model}


def _calls_in_text(source: str) -> int:
    """How many calls of `load_inline` or `load` the file holds, wherever they are."""
    count = 0
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call):
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
            count += name == "load_inline" or (name == "load" and _looks_like_build(node))
    # An alias (`import load_inline as build`) hides its calls: the import itself then counts for one.
    return max(count, 1 if "load_inline" in source else 0)


def _looks_like_build(node: ast.Call) -> bool:
    return any(keyword.arg == "sources" for keyword in node.keywords)


class _Recorder:
    """Keeps the calls, in order."""

    def __init__(self, cpp_extension: types.ModuleType) -> None:
        self.calls: list[dict[str, Any]] = []
        self.where = "import"
        self.stub_used = False
        self._signatures = {name: inspect.signature(getattr(cpp_extension, name)) for name in ("load_inline", "load")}

    def replacement(self, kind: Any) -> Any:
        def recorded(*args: Any, **kwargs: Any) -> Any:
            return self._record(kind, *args, **kwargs)

        recorded.__name__ = kind
        return recorded

    def _record(self, kind: Any, *args: Any, **kwargs: Any) -> Any:
        # cpp_sources may be left out where there are cuda_sources: the meaning is clear.
        if kind == "load_inline" and len(args) < 2:
            kwargs.setdefault("cpp_sources", None)
        arguments = dict(self._signatures[kind].bind(*args, **kwargs).arguments)
        name = str(arguments.pop("name"))
        self.calls.append(
            {
                "kind": kind,
                "name": name,
                "fingerprint": fingerprint(kind, arguments),
                "arguments": plain(arguments),
                "tuples": [key for key, value in arguments.items() if isinstance(value, tuple)],
                "files": _files(arguments) if kind == "load" else {},
                "where": self.where,
                "line": _line_of_caller(),
            }
        )
        return _stub(self, name)


def _line_of_caller() -> int | None:
    frame = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename != CANDIDATE_FILE:
        frame = frame.f_back
    return frame.f_lineno if frame is not None else None


def _files(arguments: dict[str, Any]) -> dict[str, str]:
    """The texts of the files that a `load` names, and of the headers beside them, by file name."""
    sources = arguments.get("sources")
    paths = [Path(str(p)) for p in (sources if isinstance(sources, (list, tuple)) else [sources])]
    folders = dict.fromkeys(path.parent for path in paths)
    for folder in folders:
        with contextlib.suppress(OSError):
            paths += [p for p in sorted(folder.iterdir()) if p.suffix in HEADER_SUFFIXES]
    texts: dict[str, str] = {}
    for path in paths[:_MOST_FILES]:
        with contextlib.suppress(OSError), path.open("rb") as file:
            texts.setdefault(path.name, file.read(_LARGEST_FILE).decode("utf-8", "replace"))
    return texts


def _stub(recorder: _Recorder, name: str) -> Any:
    """What the candidate gets in place of a library: it has every function, and each gives back its first tensor."""
    import torch

    def called(*args: Any, **kwargs: Any) -> Any:
        recorder.stub_used = True
        tensors = (value for value in (*args, *kwargs.values()) if isinstance(value, torch.Tensor))
        return next(tensors, torch.empty(0))

    class Stub(types.ModuleType):
        def __getattr__(self, attribute: str) -> Any:
            if attribute.startswith("__") and attribute.endswith("__"):
                raise AttributeError(attribute)
            return called

    return Stub(name)
