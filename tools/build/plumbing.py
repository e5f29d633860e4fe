"""Settles what a caught call means: from whatever mixture a model sends to a `BuildCall` that compiles.

Each thing that had to be supplied is one line in `BuildCall.added`. What is not clear raises PlumbingError, whose
diagnostic says what to write.
"""

from __future__ import annotations

import ast
import keyword
import re
from typing import Any, Literal

from tools.build import repairs
from tools.build.bindings import settle_bindings, settle_functions
from tools.build.calls import CUDA_CU, MAIN_CPP, BoundFunction, BuildCall, CaughtCall, Unit
from tools.build.draft import Draft, fail
from tools.build.flags import CheckedFlags, check_flags
from tools.build.scanner import scan
from tools.build.sources import load_draft, source_parts
from tools.build.syntax import parse
from tools.types import Finding

_CUDA_HEADERS = re.compile(
    r"^\s*#\s*include\s*[<\"](cuda|ATen/cuda/|c10/cuda/|cublas|cudnn|curand|cooperative_groups)", re.M
)


def settle(
    caught: CaughtCall,
    index: int,
    *,
    device: Literal["cuda", "cpu"],
    arch: str,
    std: str,
    uses: frozenset[str] = frozenset(),
) -> tuple[BuildCall, list[Finding]]:
    """The `BuildCall` for `caught`, and findings on flags that were refused.

    `uses` are the attributes that the candidate's Python code reads (`python_uses`), which tell what it means to call.

    Raises PlumbingError when the call can't be built as it is.
    """
    arguments = caught.arguments
    draft = _inline_draft(caught) if caught.kind == "load_inline" else load_draft(caught)
    draft.uses = uses
    draft.python_module = arguments.get("is_python_module") is not False
    if not draft.parts:
        raise fail(
            "no_source",
            f"load_inline(name={caught.name!r}) has no source text: pass the C++ code as cpp_sources"
            + (" and the CUDA code as cuda_sources" if device == "cuda" else ""),
        )
    if device == "cpu":
        _refuse_cuda(draft)
    repairs.drop_copies(draft)
    if device == "cuda":
        repairs.move_device_code(draft)
    repairs.lift_extern_c(draft)
    repairs.spell_out_dims(draft)
    settle_bindings(draft)
    settle_functions(draft)
    repairs.declare(draft)
    bindings = None
    if draft.functions is not None:
        bindings = [BoundFunction(name=name, doc=doc, python_name=python) for name, doc, python in draft.functions]
    checked = _flags(arguments, arch, std)
    for result in checked.values():
        for note in result.notes:
            draft.note(note)
    with_cuda = _with_cuda(draft, arguments.get("with_cuda"), device)
    plain_headers = arguments.get("no_implicit_headers") is True or caught.kind == "load"
    call = BuildCall(
        index=index,
        name=draft.name,
        call=caught.fingerprint,
        units=_units(draft, plain_headers) if caught.kind == "load_inline" else _file_units(draft),
        headers=[part.source for part in draft.headers],
        bindings=bindings,
        error_handling=arguments.get("with_pytorch_error_handling") is not False,
        cflags=checked["extra_cflags"].flags,
        cuda_cflags=checked["extra_cuda_cflags"].flags,
        ldflags=checked["extra_ldflags"].flags,
        include_paths=_include_paths(arguments, draft),
        with_cuda=with_cuda,
        added=draft.added,
    )
    return call, [finding for result in checked.values() for finding in result.findings]


def python_uses(source: str) -> frozenset[str]:
    """Names of the attributes that the Python code of `source` reads; empty when it is no Python."""
    try:
        tree = parse(source)
    except (SyntaxError, ValueError):
        return frozenset()
    return frozenset(node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute))


def module_name(given: str) -> str:
    """A C identifier that is also importable, as close to `given` as can be."""
    name = re.sub(r"\W", "_", given, flags=re.ASCII) or "module"
    if name[0].isdigit() or keyword.iskeyword(name):
        name = f"m_{name}"
    return name


def _inline_draft(caught: CaughtCall) -> Draft:
    arguments = caught.arguments
    name = module_name(caught.name)
    draft = Draft(
        name=name,
        cpp=source_parts("cpp_sources", arguments.get("cpp_sources")),
        cuda=source_parts("cuda_sources", arguments.get("cuda_sources")),
        functions=function_list(_functions(arguments)),
    )
    if arguments.get("sycl_sources") is not None:
        draft.note("what was given as sycl_sources, the fourth argument, was taken as functions")
    if name != caught.name:
        draft.note(f"the module {caught.name!r} is built as {name}, since a module's name is a C identifier")
    if draft.functions is not None and not isinstance(_functions(arguments), (list, dict, str)):
        draft.note("functions was taken as a list of names")
    return draft


def _functions(arguments: dict[str, Any]) -> Any:
    """What is to be bound. The fourth argument of `load_inline` was `functions` in older PyTorch, and many write it so;
    it is `sycl_sources` now."""
    functions, fourth = arguments.get("functions"), arguments.get("sycl_sources")
    if fourth is None or functions is not None:
        return functions
    names = [fourth] if isinstance(fourth, str) else list(fourth) if isinstance(fourth, (list, tuple, dict)) else [""]
    if not all(isinstance(name, str) and re.fullmatch(r"[\w:]+", name) for name in names):
        raise fail("sycl_sources", "SYCL sources can't be built here: write CUDA in cuda_sources, and functions=[…]")
    return fourth


def function_list(value: Any) -> list[tuple[str, str, str | None]] | None:
    """What `functions=` names, from a list, tuple, dict or string; None when it names nothing.

    An entry may be a whole signature, or several names with commas between them.
    """
    if value is None:
        return None
    entries: list[tuple[str, str]]
    if isinstance(value, dict):
        entries = [(str(key), str(doc)) for key, doc in value.items()]
    elif isinstance(value, str):
        entries = [(value, "")]
    elif isinstance(value, (list, tuple, set, frozenset)):
        entries = [(str(entry), "") for entry in value]
    else:
        raise fail("bad_functions", f"functions={value!r} is no list of names: write functions=['my_function']")
    found: dict[str, tuple[str, str, str | None]] = {}
    for text, doc in entries:
        for name in _names(text):
            plain = name.rsplit("::", 1)[-1]
            found.setdefault(name, (name, doc or name, plain if plain != name else None))
    return list(found.values()) or None


def _names(text: str) -> list[str]:
    if "(" in text:
        signature = text.strip().rstrip(";") + ";"
        functions = scan(
            signature if re.match(r"[\w:<>&*\s]+\s[\w:]+\s*\(", signature) else f"void {signature}"
        ).functions
        return [functions[0].qualified] if functions else [text.split("(")[0].strip().split()[-1]]
    names = [name for name in re.split(r"[\s,;]+", text.strip()) if name]
    for name in names:
        if not re.fullmatch(r"[A-Za-z_]\w*(::[A-Za-z_]\w*)*", name):
            raise fail(
                "bad_functions", f"functions names {name!r}, which is no C++ name: write functions=['my_function']"
            )
    return names


def _refuse_cuda(draft: Draft) -> None:
    part = next((p for p in draft.parts if p in draft.cuda or p.scan.device_code), None)
    if part is not None:
        raise fail(
            "cuda_on_cpu",
            f"the target is the CPU, so {part.label} can't be CUDA: write plain C++ in cpp_sources (loops, OpenMP with "
            "extra_cflags=['-fopenmp'], vector intrinsics), leave cuda_sources out, and bind it with functions=[…]",
            part.label,
        )


def _with_cuda(draft: Draft, given: Any, device: Literal["cuda", "cpu"]) -> bool:
    if device == "cpu":
        if given is True:
            draft.note("with_cuda=True was left out, the target is the CPU")
        return False
    if draft.cuda:
        if given is False:
            draft.note("with_cuda=False was left out, there are CUDA sources")
        return True
    if given is None and any(_CUDA_HEADERS.search(part.text) for part in draft.cpp):
        draft.note("with_cuda=True was added, since cpp_sources include CUDA headers")
        return True
    return given is True


def _flags(arguments: dict[str, Any], arch: str, std: str) -> dict[str, CheckedFlags]:
    names = ("extra_cflags", "extra_cuda_cflags", "extra_ldflags")
    return {name: check_flags(arguments.get(name), tool=name, arch=arch, std=std) for name in names}


def _include_paths(arguments: dict[str, Any], draft: Draft) -> list[str]:
    value = arguments.get("extra_include_paths")
    paths: list[Any] = list(value) if isinstance(value, (list, tuple)) else [value] if isinstance(value, str) else []
    kept: list[str] = []
    for path in (str(p).strip() for p in paths):
        if path.startswith(("-", "@")):
            draft.note(f"extra_include_paths: {path} was left out, it is no folder")
        elif path:
            kept.append(path)
    return kept


def _units(draft: Draft, plain_headers: bool) -> list[Unit]:
    main = Unit(
        filename=MAIN_CPP,
        language="cpp",
        parts=[part.source for part in draft.cpp],
        implicit=[] if plain_headers else ["torch/extension.h"],
        declarations=draft.declarations,
        declare_at=len(draft.cpp) if draft.declare_at is None else draft.declare_at,
    )
    if not draft.cuda:
        return [main]
    cuda = Unit(
        filename=CUDA_CU,
        language="cuda",
        parts=[part.source for part in draft.cuda],
        implicit=[] if plain_headers else ["torch/types.h", "cuda.h", "cuda_runtime.h"],
    )
    return [main, cuda]


def _file_units(draft: Draft) -> list[Unit]:
    """One unit per file of a `load`; declarations and bindings go into a C++ file."""
    units: list[Unit] = []
    at = draft.declare_at if draft.declare_at is not None else len(draft.cpp)
    for label in dict.fromkeys(part.label for part in draft.cpp):
        indices = [index for index, part in enumerate(draft.cpp) if part.label == label]
        here = indices[0] <= at <= indices[-1] or (not units and at >= len(draft.cpp))
        units.append(
            Unit(
                filename=label,
                language="cpp",
                parts=[draft.cpp[index].source for index in indices],
                declarations=draft.declarations if here else [],
                declare_at=min(at - indices[0], len(indices)) if here else 0,
            )
        )
    if not units and (draft.functions is not None or draft.declarations):
        units.append(
            Unit(
                filename="bindings.cpp",
                language="cpp",
                parts=[],
                implicit=["torch/extension.h"],
                declarations=draft.declarations,
            )
        )
    return units + [Unit(filename=part.label, language="cuda", parts=[part.source]) for part in draft.cuda]
