"""The records that builds pass along: a call as it was caught, a call made ready to compile, and what compiling gave.

`CaughtCall` is what a candidate said, in its own words; `BuildCall` is what it meant, after `plumbing.py`; both
routes compile a `BuildCall` and answer with a `CompileOutcome`.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from tools.types import Diagnostic, KernelResources, Record

MAIN_CPP = "main.cpp"
CUDA_CU = "cuda.cu"
"""File names that torch's `load_inline` gives to its two translation units."""

_OWN_BINDING = re.compile(r'\.def\(\s*"(\w+)"')
CallKind = Literal["load_inline", "load"]


class CaughtCall(Record):
    """One `load_inline` or `load` call with its arguments as given, brought into JSON.

    For `load`, `files` holds the text of the files that the candidate named or wrote, by path as it named them.
    """

    kind: CallKind
    name: str
    fingerprint: str
    arguments: dict[str, Any] = Field(default_factory=dict)
    tuples: list[str] = Field(default_factory=list, description="arguments that were tuples, which torch refuses")
    files: dict[str, str] = Field(default_factory=dict)
    where: Literal["import", "construction"] = "import"
    line: int | None = Field(default=None, description="line of the call in the candidate's own file")


# What decides what a call builds. The name is not among them, so that a name made of a time or a random number
# still finds its library; nor are verbosity and build folders.
_MEANING = (
    "cpp_sources",
    "cuda_sources",
    "sources",
    "functions",
    "extra_cflags",
    "extra_cuda_cflags",
    "extra_ldflags",
    "extra_include_paths",
    "with_cuda",
    "is_python_module",
    "with_pytorch_error_handling",
    "no_implicit_headers",
)


def fingerprint(kind: CallKind, arguments: dict[str, Any]) -> str:
    """Identifies a `load_inline` or `load` call by what it builds.

    Computed where the call is made, in the capture child and again in the worker, which so finds the library in
    `BuiltModule.call`. `arguments` are the call's arguments by name, as given. The files of a `load` count by their
    text, so that a temporary folder may have another name each time; values that are not JSON count by their text.
    """
    meaning = {key: plain(arguments[key]) for key in _MEANING if arguments.get(key) is not None}
    if kind == "load":
        meaning["sources"] = [_text_of(path) for path in _listed(arguments.get("sources"))]
        meaning.pop("extra_include_paths", None)
    text = json.dumps([kind, meaning], sort_keys=True)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def _listed(value: Any) -> list[Any]:
    return list(value) if isinstance(value, (list, tuple)) else [value]


def _text_of(path: Any) -> str:
    try:
        return Path(str(path)).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(path)


def plain(value: Any) -> Any:
    """The value as JSON would keep it; sets become sorted lists, what JSON doesn't know becomes its text."""
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted(str(v) for v in value)
    return str(value)


class SourcePart(Record):
    """A piece of the model's own source text. `label` is how messages name it, such as `cuda_sources[0]`.

    `line` is the line in the part's own text at which `text` begins, for pieces that were cut out of a larger one.
    """

    label: str
    text: str
    line: int = 1


class Unit(Record):
    """One translation unit: the model's parts in order, behind the headers that `load_inline` puts before them.

    `declarations` are forward declarations that plumbing derived; they stand before `parts[declare_at]`, or behind
    the last part when `declare_at` is the number of parts. Parts are joined by line breaks.
    """

    filename: str
    language: Literal["cpp", "cuda"]
    parts: list[SourcePart]
    implicit: list[str] = Field(default_factory=list)
    declarations: list[str] = Field(default_factory=list)
    declare_at: int = 0

    @property
    def text(self) -> str:
        """The model's own text, joined."""
        return "\n".join(part.text for part in self.parts)


class BoundFunction(Record):
    """A C++ function to bind, under the same name in Python unless `python_name` says otherwise."""

    name: str
    doc: str = ""
    python_name: str | None = None

    @property
    def exported(self) -> str:
        return self.python_name or self.name


class BuildCall(Record):
    """A `load_inline` call ready to compile: its meaning is settled, its flags are checked.

    `bindings` is None when the source brings its own `PYBIND11_MODULE` (or registers with `TORCH_LIBRARY`);
    else the binding goes at the end of the first C++ unit. `headers` are files that units include by name.
    """

    index: int
    name: str = Field(description="module name, a C identifier, unique within the candidate")
    call: str = Field(description="fingerprint of the caught call")
    units: list[Unit]
    headers: list[SourcePart] = Field(default_factory=list)
    bindings: list[BoundFunction] | None = None
    error_handling: bool = Field(default=True, description="wrap bound functions in torch::wrap_pybind_function")
    cflags: list[str] = Field(default_factory=list)
    cuda_cflags: list[str] = Field(default_factory=list)
    ldflags: list[str] = Field(default_factory=list)
    include_paths: list[str] = Field(default_factory=list)
    with_cuda: bool = False
    added: list[str] = Field(default_factory=list)

    @property
    def functions(self) -> list[str]:
        """Names that Python will find in the module; those of a `PYBIND11_MODULE` are read off its text."""
        if self.bindings is not None:
            return [binding.exported for binding in self.bindings]
        return list(dict.fromkeys(name for unit in self.units for name in _OWN_BINDING.findall(unit.text)))

    @property
    def cpp_units(self) -> list[Unit]:
        return [u for u in self.units if u.language == "cpp"]

    @property
    def cuda_units(self) -> list[Unit]:
        return [u for u in self.units if u.language == "cuda"]


class CompileOutcome(Record):
    """What a route made of one `BuildCall`.

    `library` is a file name inside the folder that the route was given, None when it did not get that far.
    `log` is everything that the tools printed, command lines included.
    """

    ok: bool
    route: Literal["fast", "stock"]
    library: str | None = None
    functions: list[str] = Field(default_factory=list)
    diagnostics: list[Diagnostic] = Field(default_factory=list)
    kernels: list[KernelResources] = Field(default_factory=list)
    added: list[str] = Field(default_factory=list)
    log: str = ""
    seconds: float = 0.0
    timed_out: bool = False
    out_of_memory: bool = False
