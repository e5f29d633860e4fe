"""Run a candidate's file in the worker with its `load_inline` calls answered by libraries that were built before."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
import linecache
import sys
import types
from collections.abc import Callable
from typing import Any

import torch
import torch.utils.cpp_extension as cpp_extension

from tools.build.calls import CallKind, fingerprint
from tools.worker.seeding import seed_all

CANDIDATE_FILE = "candidate.py"


class LoadFailure(Exception):  # noqa: N818  named for what happened
    """The candidate can't be loaded; the message is for the model."""


def import_library(name: str, path: str) -> types.ModuleType:
    """Import the extension module `name` from the shared object at `path`."""
    loader = importlib.machinery.ExtensionFileLoader(name, path)
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


class BuiltLibraries:
    """Answers `load_inline` and `load` with the library that was built for the same call."""

    def __init__(self, modules: list[dict[str, str]]) -> None:
        self._by_call = {entry["call"]: entry for entry in modules}
        self._signatures = {name: inspect.signature(getattr(cpp_extension, name)) for name in ("load_inline", "load")}
        self.loaded: list[types.ModuleType] = []
        self.paths: list[str] = []

    def install(self) -> None:
        """Answer every later call in this process."""
        cpp_extension.load_inline = self._answer("load_inline")
        cpp_extension.load = self._answer("load")

    def _answer(self, kind: CallKind) -> Callable[..., types.ModuleType | str]:
        def find(*args: Any, **kwargs: Any) -> types.ModuleType | str:
            if kind == "load_inline" and len(args) < 2:
                kwargs.setdefault("cpp_sources", None)
            arguments = dict(self._signatures[kind].bind(*args, **kwargs).arguments)
            name = str(arguments.pop("name"))
            entry = self._by_call.get(fingerprint(kind, arguments))
            if entry is None:
                raise LoadFailure(f"{kind}(name={name!r}) was not called in this way when the candidate was built")
            if arguments.get("is_python_module") is False:
                # It registers operators, which Python then finds under torch.ops.
                torch.ops.load_library(entry["library"])
                self.paths.append(entry["library"])
                return entry["library"]
            module = import_library(entry["name"], entry["library"])
            self.loaded.append(module)
            self.paths.append(entry["library"])
            return module

        find.__name__ = kind
        return find


def run_module(source: str, libraries: BuiltLibraries, module_name: str = "candidate") -> types.ModuleType:
    """Execute `source` as a module whose tracebacks show its own lines."""
    module = types.ModuleType(module_name)
    module.__file__ = CANDIDATE_FILE
    lines = source.splitlines(keepends=True)
    linecache.cache[CANDIDATE_FILE] = (len(source), None, lines, CANDIDATE_FILE)
    sys.modules[module_name] = module
    exec(compile(source, CANDIDATE_FILE, "exec"), module.__dict__)
    return module


def apply_overrides(module: types.ModuleType, overrides: dict[str, Any]) -> None:
    """Set module-level names, which is how a problem's small size is chosen."""
    for name, value in overrides.items():
        setattr(module, name, value)


def construct(module: types.ModuleType, class_name: str, init_args: Any, seed: int, device: str) -> torch.nn.Module:
    """Build `class_name(*init_args)` under `seed`, on `device`, in the way KernelBench does it."""
    factory = getattr(module, class_name, None)
    if factory is None:
        raise LoadFailure(f"the file defines no class {class_name}")
    seed_all(seed)
    model = factory(*init_args)
    if not isinstance(model, torch.nn.Module):
        raise LoadFailure(f"{class_name} is not a torch.nn.Module")
    return model.to(device)
