"""The names that torch's headers bring into a source: what could be meant by a name that the thin headers lack."""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import threading
from dataclasses import dataclass
from pathlib import Path

from tools.build.commands import Commands
from tools.build.toolchain import Toolchain

# What the stock route includes by itself, and the torch headers that models include besides.
HEADERS = (
    "torch/extension.h",
    "ATen/Parallel.h",
    "ATen/Dispatch.h",
    "ATen/ATen.h",
    "ATen/AccumulateType.h",
    "c10/util/Half.h",
    "c10/util/BFloat16.h",
)
CUDA_HEADERS = (
    "cuda.h",
    "cuda_runtime.h",
    "cuda_fp16.h",
    "cuda_bf16.h",
    "c10/cuda/CUDAStream.h",
    "c10/cuda/CUDAGuard.h",
    "c10/cuda/CUDAException.h",
    "ATen/cuda/CUDAContext.h",
    "ATen/cuda/Exceptions.h",
)
# These include libraries' headers that a toolkit by pip does not have.
_NEEDS = {"ATen/cuda/CUDAContext.h": "cusparse.h", "ATen/cuda/Exceptions.h": "cublas_v2.h"}

_TOKEN = re.compile(
    r"""^\#define[ ](?P<macro>\w+) | ^\#.*$
      | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])+' | (?P<name>[A-Za-z_]\w*) | [{}();]""",
    re.MULTILINE | re.VERBOSE,
)
# Names in these can't be meant without saying so: they hold symbols of operators, and what is internal.
_CLOSED = {"attr", "prim", "onnx", "aten", "namespaces", "user", "dimname", "detail", "impl", "internal", "_detail"}
_FORMAT = "1"
_lock = threading.Lock()


@dataclass(frozen=True, slots=True)
class KnownNames:
    """`names` are declared at namespace scope somewhere in the headers, `macros` are defined by them."""

    names: frozenset[str]
    macros: frozenset[str]

    def knows(self, name: str) -> bool:
        return name in self.names or name in self.macros


def read_names(text: str) -> KnownNames:
    """Names at namespace scope in preprocessed `text`, parameters left out, and the macros that it defines."""
    names: set[str] = set()
    macros: set[str] = set()
    open_braces: list[bool] = []  # whether names inside count
    hidden = parentheses = 0
    space: str | None = None  # the namespace that the next brace opens
    last = ""
    for match in _TOKEN.finditer(text):
        word = match.group()
        if match["macro"]:
            macros.add(match["macro"])
            continue
        if word[0] == '"' and last == "extern":
            space = "extern"
        elif word == "{":
            counts = space is not None and space not in _CLOSED
            open_braces.append(counts)
            hidden += not counts
            space = None
        elif word == "}":
            if open_braces:
                hidden -= not open_braces.pop()
        elif word == "(":
            parentheses += 1
        elif word == ")":
            parentheses -= 1
        elif word == ";":
            space = None
            parentheses = parentheses if hidden else 0
        elif word == "namespace":
            space = ""
        elif match["name"]:
            space = word if space is not None and last in ("namespace", "inline") else space
            if not hidden and not parentheses:
                names.add(word)
        last = word
    return KnownNames(frozenset(names), frozenset(macros))


def known_names(toolchain: Toolchain, commands: Commands, cache_dir: Path) -> KnownNames | None:
    """The names of this installation's headers; read once (about five seconds), then kept in `cache_dir`.

    None when the headers can't be preprocessed.
    """
    key = hashlib.sha256(repr([_FORMAT, HEADERS, CUDA_HEADERS, toolchain.model_dump()]).encode()).hexdigest()[:24]
    place = cache_dir / "names" / key
    with _lock:
        with contextlib.suppress(OSError, ValueError):
            names, macros = place.read_text(encoding="utf-8").split("\n")
            return KnownNames(frozenset(names.split()), frozenset(macros.split()))
        found = _preprocess(toolchain, commands)
        if found is not None:
            with contextlib.suppress(OSError):
                place.parent.mkdir(parents=True, exist_ok=True)
                aside = place.with_suffix(f".{os.getpid()}")
                aside.write_text(f"{' '.join(found.names)}\n{' '.join(found.macros)}", encoding="utf-8")
                aside.rename(place)
        return found


def _preprocess(toolchain: Toolchain, commands: Commands) -> KnownNames | None:
    headers = [*HEADERS, *(CUDA_HEADERS if toolchain.nvcc else ())]
    lines: list[str] = []
    for header in headers:
        needed = _NEEDS.get(header, header)
        lines += [f"#if __has_include(<{needed}>)", f"#include <{header}>", "#endif"]
    (commands.folder / "names.cpp").write_text("\n".join(lines) + "\n", encoding="ascii")
    folders = [
        *toolchain.torch_include,
        *([toolchain.nvcc.include] if toolchain.nvcc else []),
        toolchain.python_include,
    ]
    include = [flag for folder in folders for flag in ("-isystem", folder)]
    argv = [toolchain.cxx, toolchain.std, *include, "-E", "-dD", "-P", "names.cpp", "-o", "names.txt"]
    if not commands.run(argv).ok:
        return None
    return read_names((commands.folder / "names.txt").read_text(encoding="utf-8", errors="replace"))
