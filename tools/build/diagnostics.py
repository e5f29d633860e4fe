"""Reads what g++, nvcc and ptxas print into `Diagnostic` records that point into the model's own source."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import PurePosixPath

from tools.build.kinds import kind_of
from tools.build.render import Rendered
from tools.types import Diagnostic

_GCC = re.compile(
    r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:(?P<col>\d+):)? (?P<sev>fatal error|error|warning): (?P<msg>.*)$"
)
_NVCC = re.compile(
    r"^(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): (?P<sev>catastrophic error|error|warning)(?: #\d+(?:-D)?)?: (?P<msg>.*)$"
)
_PTXAS = re.compile(r"^(?:ptxas|nvlink) (?:.*?, line \d+; )?(?P<sev>error|fatal|warning)\s*: (?P<msg>.*)$")
_COMMAND = re.compile(
    r"^(?:c\+\+|g\+\+|nvcc|cc1plus)(?:: | (?P<nsev>fatal|error)\s*: )(?:(?P<sev>fatal error|error): )?(?P<msg>.*)$"
)
_FROM = re.compile(r"^(?:In file included from|\s+from) (?P<file>[^:]+):(?P<line>\d+)[:,]")
_REQUIRED = re.compile(r"^(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)?\s+required (?:from|by)")
_DETAIL = re.compile(r"^ +(?P<detail>(?:operand|argument|object) types? (?:are|is): .*)$")
MOST = 20


def parse_output(output: str, rendered: Sequence[Rendered], *, failed: bool) -> list[Diagnostic]:
    """The messages in `output`, first causes first, each kind of message at each place once.

    Messages in headers are put at the line of the model's source that led there, where that is known. Warnings are
    left out when the command failed.
    """
    files = {r.filename: r for r in rendered}
    found: list[Diagnostic] = []
    via: list[tuple[str, int]] = []
    for line in output.splitlines():
        if match := _FROM.match(line) or _REQUIRED.match(line):
            via.append((match["file"], int(match["line"])))
            continue
        if found and (match := _DETAIL.match(line)):
            # nvcc gives the types on a line of their own.
            message = f"{found[-1].message} ({match['detail']})"
            found[-1] = found[-1].model_copy(update={"message": message, "code": kind_of(message)})
            continue
        diagnostic = _located(line, files, via) or _global(line)
        if diagnostic is not None:
            found.append(diagnostic)
            via = []
        elif line and not line[0].isspace() and ": In " not in line and "instantiat" not in line:
            via = []
    return order(found, failed=failed)


def _located(line: str, files: dict[str, Rendered], via: list[tuple[str, int]]) -> Diagnostic | None:
    match = _GCC.match(line) or _NVCC.match(line)
    if match is None:
        return None
    groups = match.groupdict()
    name, number, message = groups["file"], int(groups["line"]), groups["msg"]
    severity = "warning" if groups["sev"] == "warning" else "error"
    column = int(groups["col"]) if groups.get("col") else None
    source = files.get(PurePosixPath(name).name)
    if source is None:
        # In a header: what counts is the line of the model's that led there.
        for via_name, via_line in reversed(via):
            if (reached := files.get(PurePosixPath(via_name).name)) and reached.locate(via_line):
                label, own = reached.locate(via_line) or ("", 0)
                return _record(
                    severity, f"{message} (in {PurePosixPath(name).name})", label, own, None, reached, via_line
                )
        return _record(severity, f"{message} (in {PurePosixPath(name).name}:{number})", None, None, None, None, 0)
    place = source.locate(number)
    if place is None:
        return _record(severity, message, f"{source.filename} (added by the build)", None, None, source, number)
    return _record(severity, message, place[0], place[1], column, source, number)


def _record(
    severity: str,
    message: str,
    file: str | None,
    line: int | None,
    column: int | None,
    source: Rendered | None,
    at: int,
) -> Diagnostic:
    return Diagnostic(
        severity="warning" if severity == "warning" else "error",
        message=tidy(message),
        file=file,
        line=line,
        column=column,
        code=kind_of(tidy(message)),
        source_line=source.source_line(at) if source else None,
    )


def _global(line: str) -> Diagnostic | None:
    """A message that has no line: from ptxas or from a compiler as a whole."""
    if match := _PTXAS.match(line):
        if match["sev"] == "warning":
            return None
        return Diagnostic(severity="error", message=tidy(match["msg"]), code=kind_of(tidy(line)) or "bad_ptx")
    if (match := _COMMAND.match(line)) and (match["sev"] or match["nsev"]):
        message = match["msg"]
        return Diagnostic(severity="error", message=tidy(message), code=kind_of(tidy(message)) or "compiler_error")
    return None


def tidy(message: str) -> str:
    """The message on one line without a temporary file name, the option that caused it, or typographic quotes."""
    text = message.replace("‘", "'").replace("’", "'").strip()
    text = re.sub(r"\s*\[-W[^\]]*\]$", "", text)
    text = re.sub(r"/tmp/\S*?/", "", text)
    return text if len(text) <= 600 else text[:600] + " …"


def order(found: list[Diagnostic], *, failed: bool) -> list[Diagnostic]:
    """Errors before warnings, the model's own lines before headers, repeats counted, and not more than a screen."""
    counts: dict[tuple[str, str, str | None, int | None], Diagnostic] = {}
    for diagnostic in found:
        if failed and diagnostic.severity != "error":
            continue
        key = (diagnostic.severity, diagnostic.message, diagnostic.file, diagnostic.line)
        seen = counts.get(key)
        counts[key] = seen.model_copy(update={"count": seen.count + 1}) if seen else diagnostic
    ordered = sorted(counts.values(), key=lambda d: (d.severity != "error", d.file is None))
    return ordered[:MOST]
