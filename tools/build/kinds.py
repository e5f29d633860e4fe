"""The frequent kinds of build failure, by the texts that g++, nvcc, ptxas and ld print for them.

Each kind is a stable code; the prompt templates hold a short hint for each.
"""

from __future__ import annotations

import re

_CUDA_NAMES = (
    r"dim3|blockIdx|threadIdx|blockDim|gridDim|cudaStream_t|__global__|__device__|__shared__|cudaError_t|float[24]|half2?"
    r"|__half2?|__nv_bfloat162?|cuda(?:Malloc|Memcpy|Memset|GetLastError|DeviceSynchronize|Stream|Event)\w*"
)

# The first kind whose pattern is found wins: what is more particular stands above what is more general.
_KINDS: dict[str, list[str]] = {
    "library_not_found": [r"cannot find -l", r"unable to find library -l"],
    "missing_header": [r"No such file or directory", r"cannot open source file", r"could not open source file"],
    "static_shared_too_large": [r"uses too much shared data"],
    "too_many_registers": [r"uses too many registers", r"cannot meet .*launch bound", r"too many resources"],
    "unsupported_instruction": [
        r"not supported on \.target",
        r"[Rr]equires? \.target",
        r"[Ff]eature .* requires",
        r"cannot be compiled for architecture",
        r"requires PTX ISA",
        r"Instruction .* not supported",
        r"is only (?:supported|available) (?:on|for) (?:sm_|compute)",
    ],
    "unresolved_device_symbol": [r"Unresolved extern (?:function|variable)", r"nvlink error"],
    "bad_ptx": [
        r"Arguments mismatch for instruction",
        r"Unknown modifier",
        r"Parsing error near",
        r"Illegal modifier",
        r"asm operand",
        r"invalid constraint|impossible constraint",
        r"Unexpected instruction types",
        r"Unknown symbol",
    ],
    "dim3_in_cpp": [
        rf"['\"](?:{_CUDA_NAMES})['\"].*(?:was not declared|does not name a type|has not been declared)",
        r"expected primary-expression before '<' token",
    ],
    "host_device_call": [
        r"calling a (?:constexpr )?__(?:host|device|global)__ ?(?:__\w+__ ?)?function",
        r"is undefined in device code",
        r"cannot be (?:called|referenced) (?:from|in) (?:a )?(?:__device__|__global__|device)",
        r"a __global__ function call must be configured",
        r"must have a void return type",
    ],
    "undefined_symbol": [r"undefined reference to", r"undefined symbol"],
    "duplicate_symbol": [r"multiple definition of", r"redefinition of", r"has already been (?:defined|declared)"],
    "not_bindable": [
        r"wrap_pybind_function",
        r"pyobject_caster|type_caster|make_caster|py(?:bind11)?::detail",
        r"unresolved overloaded function type",
    ],
    "half_operator": [r"(?:no operator|no match for 'operator|more than one operator|ambiguous).*(?:half|bfloat16)"],
    "ambiguous": [r"ambiguous", r"more than one (?:instance of|conversion function|operator)"],
    "wrong_arguments": [
        r"no matching function for call",
        r"no instance of .* matches",
        r"too (?:few|many) arguments",
        r"argument of type .* is incompatible",
        r"cannot convert|could not convert|invalid conversion",
        r"no suitable (?:user-defined conversion|constructor|conversion)",
        r"invalid initialization of",
    ],
    "no_member": [r"has no member", r"is not a member of", r"has no (?:actual )?member named"],
    "no_operator": [r"no operator .* matches", r"no match for 'operator", r"invalid operands"],
    "not_constant": [
        r"must have a constant value",
        r"variable length array",
        r"not a constant expression",
        r"is not usable in a constant expression",
        r"must be a constant|constant value is required",
    ],
    "cxx_standard": [r"C\+\+\d\d or later", r"only available with -std", r"C\+\+\d\d (?:or later )?compatible"],
    "syntax": [
        r"expected .*(?:before|at end of input)",
        r"expected an? ['\"(;)\w]",
        r"stray '.*' in program",
        r"unterminated|missing terminating",
        r"unrecognized token",
        r"does not match|this declaration has no storage class",
    ],
    "undeclared_name": [
        r"was not declared in this scope",
        r"is undefined",
        r"does not name a type",
        r"has not been declared",
        r"undeclared",
        r"name followed by \"::\" must be",
        r"is not a (?:template|type name|class)",
    ],
    "type_mismatch": [r"incompatible", r"cannot be used to initialize", r"narrowing conversion", r"incomplete type"],
    "bad_flag": [r"unrecognized (?:command[- ]line )?option", r"Unknown option", r"unrecognized argument"],
    "compiler_killed": [r"Killed signal terminated", r"out of memory|[Cc]annot allocate memory"],
}

_COMPILED = [(code, re.compile("|".join(patterns))) for code, patterns in _KINDS.items()]

CODES: tuple[str, ...] = tuple(_KINDS)


def kind_of(message: str) -> str | None:
    """The code for a message in plain quotes (see `diagnostics.tidy`), None when it is none of the frequent kinds."""
    return next((code for code, pattern in _COMPILED if pattern.search(message)), None)
