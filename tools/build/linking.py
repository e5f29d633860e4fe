"""Reads what the linker prints. A shared object may have undefined symbols, so those that matter are picked out here.

Symbols of Python and of CUDA libraries that torch has loaded are found when the module is imported. One that the
model's own source declares and nobody defines never is: without this the file would build and then fail to load.
"""

from __future__ import annotations

import re

from tools.build.calls import BuildCall
from tools.build.kinds import kind_of
from tools.build.scanner import scan
from tools.types import Diagnostic

REPORT_UNDEFINED = "-Wl,-z,defs,--warn-unresolved-symbols"
"""Makes the linker name undefined symbols, and changes nothing in what it writes."""

_UNDEFINED = re.compile(r"undefined (?:reference to|symbol:?) [`'‘]?(?P<symbol>[^`'’]+)")
_DOUBLE = re.compile(r"multiple definition of [`'](?P<symbol>[^`']+)'")
_ERROR = re.compile(r"(?:\bld(?:\.\w+)?|collect2|lld): (?:error: |fatal error: )?(?P<msg>.+)$")
_PLACE = re.compile(r": in function [`']|first defined here|ld returned \d|\bwarning:|: In function ")


def link_messages(output: str, call: BuildCall, *, failed: bool) -> list[Diagnostic]:
    """Errors in the linker's `output`; undefined symbols that the source of `call` declares are among them."""
    declared = {f.name: (p.label, f) for u in call.units for p in u.parts for f in scan(p.text).functions}
    found: dict[str, Diagnostic] = {}
    for line in output.splitlines():
        if match := _UNDEFINED.search(line):
            symbol = match["symbol"].strip()
            name = symbol.split("(", 1)[0].split("<", 1)[0].rsplit("::", 1)[-1].split(" ")[-1]
            if name in declared:
                label = declared[name][0]
                message = f"{symbol} is declared and used, and no source defines it"
                found.setdefault(
                    symbol, Diagnostic(severity="error", code="undefined_symbol", message=message, file=label)
                )
            elif failed and "warning" not in line:
                message = f"undefined reference to {symbol}"
                found.setdefault(symbol, Diagnostic(severity="error", code="undefined_symbol", message=message))
        elif match := _DOUBLE.search(line):
            symbol = match["symbol"]
            message = f"{symbol} is defined in more than one source"
            found.setdefault(symbol, Diagnostic(severity="error", code="duplicate_symbol", message=message))
        elif failed and not _PLACE.search(line) and (match := _ERROR.search(line)):
            message = match["msg"].strip()
            found.setdefault(
                message, Diagnostic(severity="error", code=kind_of(message) or "link_error", message=message)
            )
    return list(found.values())
