"""Builds and runs the candidates of `corpus/` by either route, for tests and for the benchmark of builds."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import inspect
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any, Literal
from unittest import mock

from tools.build.cache import BuildCache, build_key
from tools.build.calls import BuildCall, CaughtCall, CompileOutcome
from tools.build.commands import Commands
from tools.build.fast import compile_fast, prepare
from tools.build.plumbing import settle
from tools.build.stock import compile_stock
from tools.build.toolchain import Toolchain, find_toolchain
from tools.sandbox import probe_level

Route = Literal["fast", "stock"]
CORPUS = Path(__file__).parent / "corpus"
# Stock builds take 20 s each, so they are kept from one run of the tests to the next; the key has all they depend on.
CACHE = Path.home() / ".cache" / "kernel-agent" / "tests"


def sources(kind: Literal["cpp", "cuda"]) -> list[Path]:
    return sorted(CORPUS.glob(f"{kind}_*.py"))


def load(name: str, path: Path) -> ModuleType:
    """The extension module at `path`, as a worker imports it."""
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_loader(name, loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def settled(toolchain: Toolchain, device: Literal["cpu", "cuda"], **arguments: Any) -> BuildCall:
    """A `load_inline` call made ready, as the builder does it."""
    caught = CaughtCall(kind="load_inline", name=arguments["name"], fingerprint="test", arguments=arguments)
    return settle(caught, 0, device=device, arch="sm_90a", std=toolchain.std)[0]


def compiled(
    call: BuildCall, route: Route, toolchain: Toolchain, *, arch: str = "sm_90a", fresh: bool = False
) -> tuple[CompileOutcome, Path]:
    """The outcome of one route and the folder it lies in; what was built before is found again unless `fresh`."""
    cache = BuildCache(CACHE)
    kit = prepare(toolchain, CACHE)
    assert kit is not None, "the bridge could not be built"
    key = build_key(call, toolchain, arch, route, kit.key if route == "fast" else "")
    known = None if fresh else cache.find(key)
    if known is not None:
        return known, cache.place(key)
    path = [str(Path(toolchain.nvcc.path).parent)] if toolchain.nvcc else []
    with cache.workspace() as folder:
        commands = Commands(folder, 400, probe_level(), path)
        if route == "fast":
            outcome = compile_fast(call, toolchain, kit, commands, arch)
        else:
            outcome = compile_stock(call, toolchain, commands, arch)
        if outcome.ok and not fresh:
            cache.keep(key, folder, outcome)
    return outcome, cache.place(key)


def calls_of(path: Path, device: Literal["cpu", "cuda"]) -> list[BuildCall]:
    """The `load_inline` calls of a corpus file, none of them built."""
    toolchain = find_toolchain(cuda=device == "cuda")
    found: list[BuildCall] = []
    _execute(path, lambda **arguments: found.append(settled(toolchain, device, **arguments)))
    return found


def results(path: Path, route: Route, device: Literal["cpu", "cuda"], arch: str = "sm_90a") -> Any:
    """What a corpus file computes, on seeded inputs, with its modules built by `route`."""
    import torch

    toolchain = find_toolchain(cuda=device == "cuda")

    def load_inline(**arguments: Any) -> ModuleType:
        call = settled(toolchain, device, **arguments)
        outcome, folder = compiled(call, route, toolchain, arch=arch)
        assert outcome.ok and outcome.library is not None, outcome.log
        return load(call.name, folder / outcome.library)

    candidate = _execute(path, load_inline)
    torch.manual_seed(7)
    model = candidate["ModelNew"](*candidate["get_init_inputs"]()).to(device)
    inputs = [x.to(device) if isinstance(x, torch.Tensor) else x for x in candidate["get_inputs"]()]
    return model(*inputs)


def _execute(path: Path, load_inline: Callable[..., Any]) -> dict[str, Any]:
    from torch.utils import cpp_extension

    signature = inspect.signature(cpp_extension.load_inline)

    def by_name(*positional: Any, **named: Any) -> Any:
        return load_inline(**signature.bind(*positional, **named).arguments)

    namespace: dict[str, Any] = {"__name__": path.stem}
    with mock.patch.object(cpp_extension, "load_inline", by_name):
        exec(compile(path.read_text(encoding="utf-8"), str(path), "exec"), namespace)
    return namespace
