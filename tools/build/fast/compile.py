"""Compiles a `BuildCall` by the fast route: text and flags of the stock one, other headers, other libraries."""

from __future__ import annotations

import re
import sys
from pathlib import Path

from tools.build import slots
from tools.build.calls import BuildCall, CompileOutcome, Unit
from tools.build.commands import Commands
from tools.build.diagnostics import parse_output
from tools.build.fast.declarations import declare
from tools.build.fast.kit import FastKit
from tools.build.fast.prelude import prelude, words
from tools.build.linking import REPORT_UNDEFINED, link_messages
from tools.build.render import Rendered, render
from tools.build.resources import kernel_resources
from tools.build.stock import cxx_command, link_command, nvcc_command, write_headers
from tools.build.toolchain import Toolchain
from tools.types import Record


class FastPlan(Record):
    """Files to write and commands to run in a folder: `compiles` in any order, then `link`."""

    files: dict[str, str]
    compiles: list[list[str]]
    link: list[str]
    library: str


def plan(call: BuildCall, toolchain: Toolchain, kit: FastKit, arch: str) -> FastPlan:
    """What it takes to build `call` with the thin headers. `arch` is the CUDA target, such as sm_90a."""
    files: dict[str, str] = {}
    compiles: list[list[str]] = []
    objects: list[str] = []
    headers = "\n".join(h.text for h in call.headers)
    for index, unit in enumerate(call.units):
        text = render(call, unit).text
        files[unit.filename] = text
        made = f"kfast{index}"
        files |= {f"{made}/{name}": body for name, body in _made_headers(unit, text + headers, kit).items()}
        output = f"{unit.filename.rsplit('.', 1)[0]}{'.cuda' if unit.language == 'cuda' else ''}.o"
        objects.append(output)
        if unit.language == "cuda":
            argv = nvcc_command(call, toolchain, unit.filename, output, arch)
        else:
            argv = cxx_command(call, toolchain, unit.filename, output)
        compiles.append(_with_thin_headers(argv, toolchain, [made, *kit.include]))
    library = f"{call.name}.so"
    link = _link(call, toolchain, kit, objects, library)
    return FastPlan(files=files, compiles=compiles, link=link, library=library)


def compile_fast(call: BuildCall, toolchain: Toolchain, kit: FastKit, commands: Commands, arch: str) -> CompileOutcome:
    """Compile and link `call` in `commands.folder`. When it is not ok the stock route's verdict counts."""
    made = plan(call, toolchain, kit, arch)
    for name, text in made.files.items():
        path = commands.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass")
    write_headers(call, commands.folder)
    commands.readable = [*commands.readable, Path(kit.folder)]
    ran = commands.run_all(made.compiles, [_runner(unit) for unit in call.units])
    rendered: list[Rendered] = [render(call, unit) for unit in call.units]
    objects = [argv[-1] for argv in made.compiles]
    compiled = [
        (target, done.output)
        for unit, target, done in zip(call.units, objects, ran, strict=True)
        if unit.language == "cuda" and done.ok
    ]
    printed = "".join(output for _, output in compiled)
    kernels = kernel_resources(call, printed, toolchain, commands, [target for target, _ in compiled])
    diagnostics = [d for done in ran for d in parse_output(done.output, rendered, failed=not done.ok)]
    ok = all(done.ok for done in ran)
    if ok:
        linked = commands.run(made.link, quiet=True)
        ran.append(linked)
        diagnostics += link_messages(linked.output, call, failed=not linked.ok)
        ok = linked.ok and not _unresolved(linked.output)
    return CompileOutcome(
        ok=ok,
        route="fast",
        library=made.library if ok else None,
        functions=call.functions,
        diagnostics=diagnostics,
        kernels=kernels,
        log="".join(commands.log),
        seconds=sum(done.seconds for done in ran),
        timed_out=any(done.timed_out for done in ran),
        out_of_memory=any(done.out_of_memory for done in ran),
    )


def _runner(unit: Unit) -> list[str]:
    """What runs the compiler of `unit`: for nvcc, where there is more than one core, both its halves at once."""
    if unit.language != "cuda" or slots.cores() < 2:
        return []
    return [sys.executable, "-I", "-S", str(Path(__file__).with_name("side_by_side.py"))]


def _unresolved(output: str) -> list[str]:
    """Symbols that nothing on the link line defines. OpenMP's come with libtorch when the module is loaded."""
    symbols = re.findall(r"undefined reference to [`']([^`']+)'", output)
    return [s for s in symbols if not s.startswith(("GOMP_", "omp_"))]


def _made_headers(unit: Unit, text: str, kit: FastKit) -> dict[str, str]:
    """The headers that depend on the source: what it uses of the standard library and which operators it names."""
    declared = declare(Path(kit.torch_include), words(text))
    functions = f"namespace at {{\ninline namespace kfast_api {{\n{declared.functions}\n}}\n}}\n"
    # Headers of single operators stand for the whole, which has what the source names.
    single = {name: "#pragma once\n#include <kfast/all.h>\n" for name in re.findall(r"<(ATen/ops/\w+\.h)>", text)}
    return single | {
        "kfast_prelude.inc": prelude(text, cuda=unit.language == "cuda"),
        "kfast_methods.inc": declared.methods + "\n",
        "kfast_ops.inc": f"{functions}namespace torch {{\n{declared.factories}\n}}\n",
    }


def _with_thin_headers(argv: list[str], toolchain: Toolchain, folders: list[str]) -> list[str]:
    """The stock command with torch's own folders out of the search path and the thin headers in their place."""
    out: list[str] = []
    skip = False
    for flag, following in zip(argv, [*argv[1:], ""], strict=True):
        if skip:
            skip = False
        elif flag == "-isystem" and following in toolchain.torch_include:
            skip = True
            for folder in folders:
                out += ["-isystem", folder]
            folders = []
        else:
            out.append(flag)
    return out


def _link(call: BuildCall, toolchain: Toolchain, kit: FastKit, objects: list[str], library: str) -> list[str]:
    """Linked to the bridge by its path; of torch's libraries only c10 is named, for the type of its errors."""
    stock = link_command(call, toolchain, objects, library)
    dropped = {"-ltorch", "-ltorch_python", "-ltorch_cpu", "-ltorch_cuda", "-lc10_cuda", "-lc10"}
    kept = [flag for flag in stock if flag not in dropped]
    return [*kept[:-2], REPORT_UNDEFINED, kit.bridge, "-lc10", f"-Wl,-rpath,{toolchain.torch_lib}", *kept[-2:]]
