"""Which of a candidate's compiler flags are passed on, which give way to ours, and which are refused.

Flags travel as argument lists, so a shell never sees them. What is refused would run a program of the candidate's
choice during the build; what is left out has no meaning in a build that we drive.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field
from typing import Any

from tools.types import Finding


def _starts(*flags: str) -> re.Pattern[str]:
    return re.compile("^(?:" + "|".join(re.escape(flag) for flag in flags) + ")")


def _is(*flags: str) -> re.Pattern[str]:
    return re.compile("^(?:" + "|".join(re.escape(flag) for flag in flags) + ")(?:=|$)")


_SHELL = re.compile(r"`|\$\(")
_RUNS_CODE = re.compile(
    _starts("-fplugin", "-plugin", "--plugin", "-dlopen", "-specs", "--specs").pattern
    + "|"
    + _is("-wrapper", "-run", "--run").pattern
)
_OUR_CHOICE = re.compile(
    _is(
        "-ccbin", "--compiler-bindir", "--sysroot", "-isysroot", "--nvvm-dir", "-target-dir", "--target-directory"
    ).pattern
    + "|^-B"
)
_OUTSIDE = re.compile(
    r"^@|" + _is("-optf", "--options-file", "-include", "-imacros", "--pre-include", "-T", "--script").pattern
)
_OUTPUT = re.compile(
    _is(
        "-o", "--output-file", "-c", "--compile", "-S", "-E", "-M", "-MM", "-MD", "-MMD", "-MF", "-MT", "-MQ",
        "-MP", "-x",
        "-v", "--verbose", "-###", "-dryrun", "--dryrun", "-keep", "--keep", "-keep-dir", "--keep-dir", "-save-temps",
        "--save-temps", "-ptx", "--ptx", "-cubin", "--cubin", "-fatbin", "--fatbin", "-lib", "--lib", "-link", "--link",
        "-dlink", "--device-link", "--version", "-V", "--help", "-h", "-odir", "--output-directory", "-clean",
        "-fsyntax-only", "-dumpdir", "-aux-info", "-ftime-report", "--coverage", "-time", "--time",
    ).pattern
    + "|^-fdump|^-fprofile|^-ftest-coverage"
)  # fmt: skip
_TAKES_NEXT = {
    "-o", "--output-file", "-ccbin", "--compiler-bindir", "-B", "--sysroot", "-isysroot", "-optf", "--options-file",
    "-T",
    "-include", "-imacros", "--pre-include", "-x", "-keep-dir", "--keep-dir", "-odir", "--output-directory", "-MF",
    "-MT",
    "-MQ", "-wrapper", "-dumpdir", "-aux-info", "--nvvm-dir", "-specs", "-plugin", "--plugin", "-target-dir",
    "-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code", "-rdc",
    "--relocatable-device-code", "-time", "--time", "-I", "-L", "-l", "-D", "-U", "-isystem", "-idirafter",
    "-Xptxas", "--ptxas-options", "-Xcudafe", "--cudafe-options", "-maxrregcount", "--maxrregcount", "-std", "--std",
    "-Xarchive", "-Xnvlink", "--nvlink-options", "-diag-suppress", "--diag-suppress", "-t", "--threads",
}  # fmt: skip
_PASSES_ON = {"-Xcompiler", "--compiler-options", "-Xlinker", "--linker-options", "-Xassembler", "-Xpreprocessor"}
_ARCH = _is("-arch", "--gpu-architecture", "-gencode", "--generate-code", "-code", "--gpu-code")
_RELOCATABLE = _is("-rdc", "--relocatable-device-code", "-dc", "--device-c")
_LOOSE_MATH = re.compile(
    r"^(?:--?use_fast_math|-ffast-math|-Ofast|--?prec-(?:div|sqrt)=false|--?ftz=true|-funsafe-math-optimizations)$"
)
_STD = re.compile(r"^--?std=(?:c|gnu)\+\+(\w+)$")
_STD_ORDER = ["98", "03", "0x", "11", "1y", "14", "1z", "17", "2a", "20", "2b", "23", "26"]


@dataclass(slots=True)
class CheckedFlags:
    """`flags` to pass on; `notes` on what was dropped or kept with a remark; `findings` on what is refused."""

    flags: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


def split_flags(value: Any) -> list[str]:
    """Flags as a list of words, from whatever a model passes: a string, a list, a tuple, None.

    torch writes them into a ninja file, where a shell splits an entry such as "-O3 -Wall" in two; so do we.
    """
    words: list[str] = []
    for text in _entries(value):
        try:
            words += shlex.split(text)
        except ValueError:
            words += text.split()
    return words


def _entries(value: Any) -> list[str]:
    if value is None:
        return []
    return [str(entry) for entry in value] if isinstance(value, (list, tuple)) else [str(value)]


def check_flags(value: Any, *, tool: str, arch: str, std: str) -> CheckedFlags:
    """Sort the flags of `extra_cflags`, `extra_cuda_cflags` or `extra_ldflags` (named by `tool`)."""
    result = CheckedFlags()
    for entry in _entries(value):
        if _SHELL.search(entry):
            _refuse(result, tool, entry)
    if result.findings:
        return result
    words = split_flags(value)
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        argument: str | None = None
        if (word in _TAKES_NEXT or word in _PASSES_ON) and index < len(words):
            argument = words[index]
            index += 1
        _sort(result, word, argument, tool=tool, arch=arch, std=std)
    return result


def _sort(result: CheckedFlags, word: str, argument: str | None, *, tool: str, arch: str, std: str) -> None:
    shown = word if argument is None else f"{word} {argument}"
    inner = _handed_on(word, argument)
    if any(_RUNS_CODE.search(flag) for flag in (word, *inner)):
        _refuse(result, tool, shown)
    elif _ARCH.match(word):
        number = arch.removeprefix("sm_")
        if not re.search(rf"(?:sm|compute)_{number}\b", shown) and "native" not in shown:
            result.notes.append(f"{tool}: {shown} was left out, the build targets {arch}")
    elif _RELOCATABLE.match(word):
        result.notes.append(f"{tool}: {shown} was left out, load_inline does not link device code")
    elif any(_OUR_CHOICE.match(flag) for flag in (word, *inner)):
        result.notes.append(f"{tool}: {shown} was left out, the build chooses its own compilers")
    elif any(_OUTSIDE.match(flag) for flag in (word, *inner)):
        result.notes.append(f"{tool}: {shown} was left out, a flag may not pull in files; write #include in the source")
    elif any(_OUTPUT.match(flag) for flag in (word, *inner)):
        result.notes.append(f"{tool}: {shown} was left out, it would change what the build writes")
    elif (match := _STD.match(word if argument is None else f"{word}={argument}")) and _older(match.group(1), std):
        result.notes.append(f"{tool}: {shown} was left out, this torch needs {std}")
    else:
        if _LOOSE_MATH.match(word):
            result.notes.append(f"{tool}: {shown} is kept; it trades accuracy for speed, which the judge measures")
        result.flags += [word] if argument is None else [word, argument]


def _handed_on(word: str, argument: str | None) -> list[str]:
    """The flags inside one that hands them to another program, such as `-Xcompiler a,b` or `-Wl,a,b`."""
    for prefix in ("-Wl,", "-Wa,", "-Wp,"):
        if word.startswith(prefix):
            return word[len(prefix) :].split(",")
    name, _, value = word.partition("=")
    if name in _PASSES_ON:
        return [piece.strip("'\"") for piece in (argument or value).split(",")]
    return []


def _refuse(result: CheckedFlags, tool: str, shown: str) -> None:
    result.findings.append(
        Finding(
            code="flag_runs_command",
            summary=f"{tool} holds {shown!r}, which would run a command during the build: remove it",
            observed={"argument": tool, "flag": shown},
        )
    )


def _older(given: str, ours: str) -> bool:
    wanted = ours.rsplit("++", 1)[-1]
    if given not in _STD_ORDER or wanted not in _STD_ORDER:
        return False
    return _STD_ORDER.index(given) < _STD_ORDER.index(wanted)
