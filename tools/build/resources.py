"""What ptxas says of each kernel: registers, spills, stack, shared memory, and the occupancy that they allow."""

from __future__ import annotations

import re

from tools.build.demangle import demangle
from tools.types import KernelResources

_ENTRY = re.compile(r"Compiling entry function '(?P<name>[^']+)' for '(?P<arch>[^']+)'")
_PROPERTIES = re.compile(r"Function properties for (?P<name>\S+)")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_USED = re.compile(r"Used (\d+) registers(.*)")
_SHARED = re.compile(r"(\d+)(?:\+\d+)? bytes smem")
_CONSTANT = re.compile(r"(\d+) bytes cmem\[\d+\]")


def parse_resources(output: str) -> list[KernelResources]:
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
            constant = _CONSTANT.findall(match[2])
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
                    constant=sum(int(c) for c in constant),
                )
            )
            entry = None
    return kernels
