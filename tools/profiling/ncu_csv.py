"""Nsight Compute's CSV, read with tolerance: its rows come among its messages, and its columns grow with its versions.

Two layouts. `--page details` has a row for each metric and each rule of a launch; `--page raw` has a row for each
launch, a column for each metric, and a row of units below the head.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator

from tools.profiling.metrics import ISSUE_LATENCY, METRICS, STALL_METRICS
from tools.profiling.records import KernelCounters, RuleText

MOST_STALLS = 5
MOST_RULES = 6
MOST_RULE_TEXT = 600
_DATA_KINDS = ("OPT", "WRN", "INF")
# Factors to the base unit in which our names count: microseconds, bytes.
_UNITS = {
    "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6, "second": 1e6,
    "kbyte": 1e3, "mbyte": 1e6, "gbyte": 1e9, "tbyte": 1e12, "byte": 1.0, "b": 1.0, "kb": 1e3, "mb": 1e6, "gb": 1e9,
    "kbyte/block": 1e3, "byte/block": 1.0,
}  # fmt: skip
_LIMITERS = {
    "limit_registers": "registers",
    "limit_shared_memory": "shared memory",
    "limit_warps": "warps",
    "limit_blocks": "blocks",
}
_ANGLE_LINK = re.compile(r"@(?:url|section|sass|sectionlink|source):([^:@]*)(?::[^@]*)?@")


def parse(text: str) -> list[KernelCounters]:
    """The launches in Nsight Compute's output, in their order. Rows and columns that we don't know are passed over."""
    launches: dict[str, _Launch] = {}
    for head, rows in _tables(text):
        column = {name: index for index, name in enumerate(head)}
        units: dict[str, str] = {}
        for row in rows:
            cells = {name: row[index] for name, index in column.items() if index < len(row)}
            identity = cells.get("ID", "")
            if not identity.isdigit():
                # The row of units: no launch has none, and the metric columns say what they count in.
                units = units or {name: value for name, value in cells.items() if value}
                continue
            launch = launches.setdefault(identity, _Launch(cells))
            if "Metric Name" in column or "Rule Name" in column:
                launch.take(cells.get("Metric Name", ""), cells.get("Metric Value", ""), cells.get("Metric Unit", ""))
                launch.rule(cells)
            else:
                for name, value in cells.items():
                    launch.take(name, value, units.get(name, ""))
    return [launch.record() for launch in launches.values()]


def _tables(text: str) -> Iterator[tuple[list[str], list[list[str]]]]:
    """Each head with the rows below it. A message of Nsight Compute's begins with `==` and may stand anywhere."""
    head: list[str] | None = None
    rows: list[list[str]] = []
    lines = "\n".join(line for line in text.splitlines() if not line.startswith("=="))
    for row in csv.reader(io.StringIO(lines)):
        if row[:1] == ["ID"] and "Kernel Name" in row:
            if head is not None:
                yield head, rows
            head, rows = row, []
        elif head is not None and len(row) > 1:
            rows.append(row)
    if head is not None:
        yield head, rows


class _Launch:
    def __init__(self, cells: dict[str, str]) -> None:
        self.cells = cells
        self.values: dict[str, tuple[float, str]] = {}
        self.rules: list[RuleText] = []

    def take(self, name: str, value: str, unit: str) -> None:
        number = _number(value)
        if name and number is not None:
            self.values[name] = number, unit.strip().lower()

    def rule(self, cells: dict[str, str]) -> None:
        kind, text = cells.get("Rule Type", ""), cells.get("Rule Description", "")
        if kind not in _DATA_KINDS or not text:
            return
        plain = " ".join(_ANGLE_LINK.sub(r"\1", text).split())
        self.rules.append(
            RuleText(
                name=cells.get("Rule Name", "")[:80],
                kind=kind,
                text=plain if len(plain) <= MOST_RULE_TEXT else plain[:MOST_RULE_TEXT] + "…",
                speedup=_number(cells.get("Estimated Speedup", "")),
            )
        )

    def record(self) -> KernelCounters:
        metrics = {ours: value for ours, theirs in METRICS.items() if (value := self._scaled(theirs)) is not None}
        stalls = {reason: value for reason, name in STALL_METRICS.items() if (value := self._scaled(name)) is not None}
        longest = sorted(((v, k) for k, v in stalls.items() if v > 0 and k != "selected"), reverse=True)[:MOST_STALLS]
        # Those that promise something first; a mere remark says nothing that the figures don't.
        rules = sorted((r for r in self.rules if r.kind != "INF"), key=lambda r: -(r.speedup or 0.0))
        return KernelCounters(
            name=self.cells.get("Kernel Name", "")[:400],
            grid=self.cells.get("Grid Size", ""),
            block=self.cells.get("Block Size", ""),
            metrics=metrics,
            stalls={reason: value for value, reason in longest},
            issue_latency=self._scaled(ISSUE_LATENCY),
            occupancy_limited_by=_limiter(metrics),
            rules=rules[:MOST_RULES],
        )

    def _scaled(self, name: str) -> float | None:
        found = self.values.get(name)
        if found is None:
            return None
        value, unit = found
        return value * _UNITS.get(unit, 1.0)


def _limiter(metrics: dict[str, float]) -> str | None:
    limits = {name: metrics[key] for key, name in _LIMITERS.items() if key in metrics}
    if not limits:
        return None
    least = min(limits.values())
    return " and ".join(name for name, value in limits.items() if value == least)


def _number(text: str) -> float | None:
    """A figure with or without thousands separators; None for n/a and for text."""
    try:
        value = float(text.replace(",", "").strip())
    except ValueError:
        return None
    return value if value == value and abs(value) != float("inf") else None
