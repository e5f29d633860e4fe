"""What is known of each kernel once it is compiled: ptxas's figures, the occupancy they allow, and the machine code."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tools.build.calls import BuildCall
from tools.build.commands import Commands
from tools.build.demangle import base_name, demangle
from tools.build.occupancy import best_occupancy, multiprocessor, occupancy
from tools.build.sass import parse_sass
from tools.build.scanner import scan
from tools.build.toolchain import Toolchain
from tools.types import KernelResources

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")
_MAX_SASS = 64 << 20


def kernel_resources(
    call: BuildCall, output: str, toolchain: Toolchain, commands: Commands, objects: Sequence[str]
) -> list[KernelResources]:
    """One record per `__global__` function of `call`, in ptxas's order.

    `output` is what nvcc printed with `-Xptxas -v`; `objects` (file names in the build's folder) are disassembled
    where a cuobjdump was found.
    """
    kernels = [with_occupancy(kernel, launch_bounds(call)) for kernel in parse_ptxas(output)]
    disassembler = toolchain.nvcc.cuobjdump if toolchain.nvcc else None
    if disassembler is None or not kernels:
        return kernels
    done = commands.run([disassembler, "--dump-sass", *objects], max_output=_MAX_SASS, quiet=True)
    code = parse_sass(done.output) if done.ok else {}
    return [
        kernel.model_copy(
            update={
                "tensor_core_instructions": facts.tensor,
                "global_access": facts.access,
                "local_memory_instructions": facts.local,
            }
        )
        if (facts := code.get(kernel.mangled))
        else kernel
        for kernel in kernels
    ]


def parse_ptxas(output: str) -> list[KernelResources]:
    """One record per `__global__` function in the output of `nvcc -Xptxas -v`, in its order."""
    kernels: list[KernelResources] = []
    entry: tuple[str, str] | None = None
    stack = (0, 0, 0)
    current = ""
    for line in output.splitlines():
        if match := _ENTRY.search(line):
            entry, stack, current = (match["name"], match["arch"]), (0, 0, 0), match["name"]
        elif match := _PROPERTIES.search(line):
            current = match["name"]
        elif (match := _STACK.search(line)) and entry and current == entry[0]:
            stack = (int(match[1]), int(match[2]), int(match[3]))
        elif (match := _USED.search(line)) and entry:
            shared = _SHARED.search(match[2])
            kernels.append(
                KernelResources(
                    name=demangle(entry[0]),
                    mangled=entry[0],
                    arch=entry[1],
                    registers=int(match[1]),
                    stack=stack[0],
                    spill_stores=stack[1],
                    spill_loads=stack[2],
                    static_shared=int(shared[1]) if shared else 0,
                    constant=sum(int(c) for c in _CONSTANT.findall(match[2])),
                )
            )
            entry = None
    return kernels


def with_occupancy(kernel: KernelResources, bounds: dict[str, int]) -> KernelResources:
    """`kernel` with its theoretical occupancy (static shared memory only) and the dynamic shared memory left to it."""
    limits = multiprocessor(kernel.arch)
    if limits is None:
        return kernel
    size = bounds.get(base_name(kernel.name))
    found = (
        occupancy(kernel.arch, registers=kernel.registers, shared=kernel.static_shared, block=size)
        if size
        else best_occupancy(kernel.arch, registers=kernel.registers, shared=kernel.static_shared)
    )
    if found is None:
        return kernel
    return kernel.model_copy(
        update={
            "dynamic_shared_limit": limits.shared_per_block - kernel.static_shared,
            "block": found.block,
            "theoretical_occupancy": round(found.fraction, 4),
            "occupancy_limited_by": found.limited_by,
        }
    )


def launch_bounds(call: BuildCall) -> dict[str, int]:
    """Threads per block by kernel name, where the source says `__launch_bounds__(n)` with a number."""
    bounds: dict[str, int] = {}
    for unit in call.cuda_units:
        for part in unit.parts:
            for function in scan(part.text).functions:
                words = [token.text for token in function.head]
                if "__launch_bounds__" in words:
                    number = words[words.index("__launch_bounds__") + 2]
                    if number.isdigit() and 0 < int(number) <= 1024:
                        bounds[function.name] = int(number)
    return bounds
