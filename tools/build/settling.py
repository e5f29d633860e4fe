"""From all caught calls of one file to calls ready to compile, each under a name of its own."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Literal

from tools.build.calls import BuildCall, CaughtCall
from tools.build.draft import PlumbingError
from tools.build.plumbing import python_uses, settle
from tools.types import Diagnostic, Finding


@dataclass(slots=True)
class Settled:
    """Each caught call with what it became; `diagnostics` for those that can't be built, and refused flags."""

    pairs: list[tuple[CaughtCall, BuildCall]] = field(default_factory=list)
    diagnostics: list[Diagnostic] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def calls(self) -> list[BuildCall]:
        return [call for _, call in self.pairs]


def settle_all(
    source: str, caught: list[CaughtCall], *, device: Literal["cuda", "cpu"], arch: str, std: str
) -> Settled:
    """Settle every distinct call of the candidate file `source`."""
    settled = Settled()
    uses = python_uses(source)
    names: set[str] = set()
    for index, one in enumerate(distinct(caught)):
        try:
            call, findings = settle(one, index, device=device, arch=arch, std=std, uses=uses)
        except PlumbingError as error:
            settled.diagnostics.append(error.diagnostic)
            continue
        call = _with_unique_name(call, names)
        names.add(call.name)
        settled.findings += findings
        settled.pairs.append((one, call))
    return settled


def distinct(calls: list[CaughtCall]) -> list[CaughtCall]:
    """Calls that build different things under the same name stay apart; repeats of the same call count once."""
    seen: dict[str, CaughtCall] = {}
    for call in calls:
        seen.setdefault(json.dumps([call.name, call.fingerprint]), call)
    return list(seen.values())


def _with_unique_name(call: BuildCall, names: set[str]) -> BuildCall:
    name = call.name
    number = 2
    while name in names:
        name = f"{call.name}_{number}"
        number += 1
    if name == call.name:
        return call
    note = f"a second module named {call.name} is built as {name}"
    return call.model_copy(update={"name": name, "added": [*call.added, note]})
