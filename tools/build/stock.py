"""The stock route: torch's own headers, with the very command lines that torch's `load_inline` would write."""

from __future__ import annotations

import os
from pathlib import Path

from tools.build.calls import BuildCall, CompileOutcome, Unit
from tools.build.commands import MEMORY_BYTES, Commands, Ran
from tools.build.diagnostics import parse_output
from tools.build.linking import REPORT_UNDEFINED, link_messages
from tools.build.render import Rendered, render
from tools.build.resources import kernel_resources
from tools.build.toolchain import Toolchain
from tools.types import Diagnostic

_NVCC_FLAGS = [
    "-D__CUDA_NO_HALF_OPERATORS__",
    "-D__CUDA_NO_HALF_CONVERSIONS__",
    "-D__CUDA_NO_BFLOAT16_CONVERSIONS__",
    "-D__CUDA_NO_HALF2_OPERATORS__",
    "--expt-relaxed-constexpr",
]


def common_flags(call: BuildCall, toolchain: Toolchain) -> list[str]:
    """Defines and include folders that both compilers get. Sources and headers lie in the working folder."""
    flags = [f"-DTORCH_EXTENSION_NAME={call.name}", "-DTORCH_API_INCLUDE_EXTENSION_H"]
    flags += [f"-I{path}" for path in call.include_paths]
    system = list(toolchain.torch_include)
    if call.with_cuda and toolchain.nvcc and toolchain.nvcc.include != "/usr/include":
        system.append(toolchain.nvcc.include)
    for path in (*system, toolchain.python_include):
        flags += ["-isystem", path]
    return flags


def cxx_command(call: BuildCall, toolchain: Toolchain, source: str, output: str) -> list[str]:
    """The command that compiles a C++ unit."""
    flags = [*common_flags(call, toolchain), "-fPIC", toolchain.std, *call.cflags]
    return [toolchain.cxx, *flags, "-c", f"./{source}", "-o", output]


def nvcc_command(call: BuildCall, toolchain: Toolchain, source: str, output: str, arch: str) -> list[str]:
    """The command that compiles a CUDA unit for `arch`; it also prints what each kernel uses."""
    assert toolchain.nvcc is not None
    flags = [*common_flags(call, toolchain), *_NVCC_FLAGS, *arch_flags(arch), "--compiler-options", "-fPIC"]
    flags += call.cuda_cflags
    if not any(flag.startswith("-std=") for flag in flags):
        flags.append(toolchain.std)
    return [toolchain.nvcc.path, *flags, "-Xptxas", "-v", "-c", f"./{source}", "-o", output]


def arch_flags(arch: str) -> list[str]:
    """`sm_90a` as torch writes it from `TORCH_CUDA_ARCH_LIST=9.0a`."""
    number = arch.removeprefix("sm_")
    return [f"-gencode=arch=compute_{number},code=sm_{number}"]


def link_command(call: BuildCall, toolchain: Toolchain, objects: list[str], output: str) -> list[str]:
    """The command that links the module."""
    cuda = ["-lc10_cuda"] if call.with_cuda else []
    torch_cuda = ["-ltorch_cuda"] if call.with_cuda else []
    flags = ["-shared", *call.ldflags, f"-L{toolchain.torch_lib}", "-lc10", *cuda, "-ltorch_cpu", *torch_cuda]
    flags += ["-ltorch", "-ltorch_python"]
    if call.with_cuda and toolchain.nvcc:
        flags += [f"-L{toolchain.nvcc.library_dir}", toolchain.nvcc.cudart]
    return [toolchain.cxx, *objects, *flags, REPORT_UNDEFINED, "-o", output]


def compile_stock(call: BuildCall, toolchain: Toolchain, commands: Commands, arch: str) -> CompileOutcome:
    """Compile and link `call` in `commands.folder`.

    Without a CUDA build of torch, CUDA units are compiled and not linked: the outcome is ok and has no library.
    """
    folder = commands.folder
    rendered: list[Rendered] = []
    for unit in call.units:
        text = render(call, unit)
        (folder / unit.filename).write_text(text.text, encoding="utf-8", errors="surrogatepass")
        rendered.append(text)
    write_headers(call, folder)
    objects = [_object_name(unit) for unit in call.units]
    compiles = [
        nvcc_command(call, toolchain, unit.filename, target, arch)
        if unit.language == "cuda"
        else cxx_command(call, toolchain, unit.filename, target)
        for unit, target in zip(call.units, objects, strict=True)
    ]
    ran = commands.run_all(compiles)
    compiled = [
        (target, done.output)
        for unit, target, done in zip(call.units, objects, ran, strict=True)
        if unit.language == "cuda" and done.ok
    ]
    printed = "".join(output for _, output in compiled)
    kernels = kernel_resources(call, printed, toolchain, commands, [target for target, _ in compiled])
    diagnostics = [d for done in ran for d in parse_output(done.output, rendered, failed=not done.ok)]
    library: str | None = None
    ok = all(done.ok for done in ran)
    if ok and (toolchain.links_cuda or not call.with_cuda):
        library = f"{call.name}.so"
        linked = commands.run(link_command(call, toolchain, objects, library), quiet=True)
        ran.append(linked)
        problems = link_messages(linked.output, call, failed=not linked.ok)
        diagnostics += problems
        ok = linked.ok and not problems
    if not ok and not diagnostics:
        diagnostics = [unexplained(next(done for done in ran if not done.ok))]
    return CompileOutcome(
        ok=ok,
        route="stock",
        library=library if ok else None,
        functions=call.functions,
        diagnostics=diagnostics,
        kernels=kernels,
        log="".join(commands.log),
        seconds=sum(done.seconds for done in ran),
        timed_out=any(done.timed_out for done in ran),
        out_of_memory=any(done.out_of_memory for done in ran),
    )


def unexplained(ran: Ran) -> Diagnostic:
    """The error for a command that failed in words that nothing was read from: its last lines, or its limit."""
    if ran.out_of_memory:
        message = f"the compiler needed more than {MEMORY_BYTES >> 30} GiB of memory and was stopped"
        return Diagnostic(severity="error", code="compiler_killed", message=message)
    lines = ran.output.strip().splitlines()[-8:]
    program = Path(ran.argv[0]).name
    return Diagnostic(severity="error", code="compiler_error", message="\n".join([f"{program} failed:", *lines])[:1500])


def write_headers(call: BuildCall, folder: Path) -> None:
    """Put the files that units include beside them."""
    for header in call.headers:
        target = folder / os.path.normpath("/" + header.label).lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(header.text, encoding="utf-8", errors="surrogatepass")


def _object_name(unit: Unit) -> str:
    stem = f"./{unit.filename}".rsplit(".", 1)[0]
    return f"{stem}.cuda.o" if unit.language == "cuda" else f"{stem}.o"
