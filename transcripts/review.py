"""A run as a reader sees it in the terminal, and as one JSON document."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, cast

from transcripts.events import (
    EVENT,
    BestChanged,
    Confirmed,
    ErrorSeen,
    Event,
    JsonObject,
    MessagesAdded,
    Nudged,
    ReplyReceived,
    Resumed,
    RunFinished,
    RunStarted,
    ToolCallStarted,
    ToolResult,
)
from transcripts.messages import Reply, ToolCall, Usage
from transcripts.reading import read_events
from transcripts.records import DiagnosticView, RecordView, TimingView
from transcripts.restore import RestoredRun, restore_events

if TYPE_CHECKING:
    from rich.console import Console

_TEXT_LINES = 8
_ERRORS = 3
_GOOD = {"correct", "built", "submitted"}
# Escape sequences in what a model or a compiler wrote must not reach the terminal.
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def render_run(run: Path, console: Console) -> None:
    """Print the run in folder `run`: header, turns, candidates, result. Raises TranscriptError if it is unreadable."""
    events = read_events(run)
    state = restore_events(events)
    render_events(events, console)
    _candidates(state, console)
    _end(state, run, console)


def render_events(events: Iterable[Event], console: Console) -> None:
    """Print events as they come, for a run that is still being written."""
    for event in events:
        _render(event, console)


def run_as_json(run: Path) -> JsonObject:
    """The run in one document: what it came to, its candidates and sums, and all its events.

    Raises TranscriptError if it is unreadable.
    """
    events = read_events(run)
    state = restore_events(events)
    document = {
        "run": str(run),
        "problem": state.started.problem,
        "model": state.started.model,
        "finished": state.finished is not None,
        "reason": state.finished.reason if state.finished else None,
        "result": state.finished.result if state.finished else None,
        "turns": state.turns,
        "seconds": state.seconds,
        "cost_usd": state.cost_usd,
        "usage": state.usage.model_dump(),
        "best": state.best.id if state.best else None,
        "candidates": [candidate.model_dump(mode="json") for candidate in state.candidates.values()],
        "events": [EVENT.dump_python(event, mode="json") for event in events],
    }
    return cast(JsonObject, document)


def _render(event: Event, console: Console) -> None:
    match event:
        case RunStarted():
            _header(event, console)
        case MessagesAdded():
            for message in event.messages:
                _line(console, f"  {message.role}: {_short(message.text, 120)}", "dim")
        case ReplyReceived():
            _reply(event.turn, event.reply, console)
        case ToolCallStarted():
            _line(console, f"  ▸ {_call(event.call)}", "cyan")
        case ToolResult():
            _result(event, console)
        case BestChanged():
            _line(
                console,
                f"  ★ fastest so far: {event.id}, {_time(event.time_us)}, {_times(event.speedup)}",
                "bold green",
            )
        case Nudged():
            _line(console, f"  nudged: {event.reason.replace('_', ' ')}, {event.in_a_row} in a row", "yellow")
        case ErrorSeen():
            _line(console, f"  {event.kind} ({event.source}): {event.message}", "red")
        case Resumed():
            _line(console, f"taken up again at {event.time:%Y-%m-%d %H:%M:%S} UTC", "yellow")
        case Confirmed():
            _confirmation(event, console)
        case RunFinished():
            _line(console, f"\nended: {event.reason.replace('_', ' ')}", "bold")
        case _:
            pass


def _header(started: RunStarted, console: Console) -> None:
    device = started.device or {}
    versions = ", ".join(f"{name} {version}" for name, version in started.versions.items())
    rows = {
        "problem": started.problem,
        "model": started.model,
        "device": str(device.get("name") or "not known"),
        "sandbox": started.sandbox or "not known",
        "started": f"{started.time:%Y-%m-%d %H:%M:%S} UTC",
        "versions": versions or "not known",
    }
    for name, value in rows.items():
        _line(console, f"{name:>9}  {value}", "bold" if name == "problem" else "")


def _reply(turn: int, reply: Reply, console: Console) -> None:
    facts = [f"turn {turn}", f"{reply.seconds:.1f} s", *_tokens(reply.usage)]
    if reply.cost_usd is not None:
        facts.append(f"${reply.cost_usd:.4f}")
    if reply.retries:
        facts.append(f"{reply.retries} retries")
    _line(console, "\n" + " · ".join(facts), "bold")
    lines = reply.text.strip().splitlines() or ["(no words)"]
    for line in lines[:_TEXT_LINES]:
        _line(console, f"  {line}")
    if len(lines) > _TEXT_LINES:
        _line(console, f"  … {len(lines) - _TEXT_LINES} more lines", "dim")


def _result(event: ToolResult, console: Console) -> None:
    view = RecordView.of(event.record)
    words = [view.kernel or event.name, view.outcome, f"{event.seconds:.1f} s"]
    if view.edited_from:
        words.insert(1, f"from {view.edited_from}")
    if view.timing is not None:
        words.append(_timing(view.timing))
    _line(console, "    " + "  ".join(words), "green" if view.outcome in _GOOD else "yellow")
    _details(view, console)


def _confirmation(event: Confirmed, console: Console) -> None:
    view = RecordView.of(event.record)
    outcome = "confirmed" if event.confirmed else f"not confirmed ({view.outcome})"
    measured = f"  {_timing(view.timing)}" if view.timing is not None else ""
    text = f"\n{event.id} in fresh processes, with fresh seeds and a stock build: {outcome}{measured}"
    _line(console, text, "green" if event.confirmed else "red")
    if not event.confirmed:
        _details(view, console)


def _details(view: RecordView, console: Console) -> None:
    for problem in view.problems:
        _line(console, f"      {problem}", "yellow")
    diagnostics = view.build.diagnostics if view.build is not None else []
    errors = [diagnostic for diagnostic in diagnostics if diagnostic.severity == "error"]
    for diagnostic in errors[:_ERRORS]:
        _line(console, f"      {_diagnostic(diagnostic)}", "red")
    if len(errors) > _ERRORS:
        _line(console, f"      … {len(errors) - _ERRORS} more errors", "dim")
    for finding in view.findings():
        _line(console, f"      {finding.severity}: {finding.summary}", "red" if finding.severity == "error" else "dim")


def _candidates(state: RestoredRun, console: Console) -> None:
    from rich.table import Table
    from rich.text import Text

    if not state.candidates:
        return
    table = Table("candidate", "from", "verdict", "time", "speed-up", box=None, pad_edge=False, title=None)
    for candidate in state.candidates.values():
        best = state.best is not None and candidate.id == state.best.id
        cells = (
            candidate.id + (" ★" if best else ""),
            candidate.parent or "",
            candidate.verdict or ("built, not judged" if candidate.built else "not judged"),
            "" if candidate.time_us is None else _time(candidate.time_us),
            "" if candidate.speedup is None else _times(candidate.speedup),
        )
        table.add_row(*(Text(_clean(cell), style="bold green" if best else "") for cell in cells))
    console.print()
    console.print(table)


def _end(state: RestoredRun, run: Path, console: Console) -> None:
    spent = [f"{state.turns} turns", f"{state.seconds:.0f} s", *_tokens(state.usage)]
    if state.cost_usd is not None:
        spent.append(f"${state.cost_usd:.4f}")
    _line(console, "\nspent: " + " · ".join(spent))
    if state.finished is None:
        text = "The run has not ended. The command that started it goes on from here."
        _line(console, text, "yellow")
        return
    result = state.finished.result
    if not result.get("solved"):
        _line(console, "result: no correct kernel", "bold red")
        return
    text = f"result: {result.get('kernel')}{_said(result, 'speedup')}"
    best = result.get("best_baseline")
    if best not in (None, "eager"):
        text += f" over eager{_said(result, 'speedup_over_best')} over the best baseline, {best}"
    _line(console, text, "bold green")
    solution = result.get("solution")
    if isinstance(solution, str) and (run / solution).exists():
        _line(console, f"solution: {run / solution}")


def _said(result: JsonObject, name: str) -> str:
    """A ratio of the result with its interval, as far as it is known."""
    value, low, high = (result.get(key) for key in (name, f"{name}_low", f"{name}_high"))
    text = f", {_times(value)}" if isinstance(value, int | float) else ""
    if isinstance(low, int | float) and isinstance(high, int | float):
        text += f" ({_times(low)} to {_times(high)})"
    return text


def _tokens(usage: Usage) -> list[str]:
    if usage.prompt_tokens is None and usage.completion_tokens is None:
        return []
    cached = f" ({usage.cached_tokens:,} cached)" if usage.cached_tokens else ""
    return [f"{usage.prompt_tokens or 0:,}{cached} + {usage.completion_tokens or 0:,} tokens"]


def _call(call: ToolCall) -> str:
    """A call in one line: long texts by their number of lines."""
    try:
        arguments = json.loads(call.arguments or "{}", strict=False)
    except (ValueError, RecursionError):
        return f"{call.name}({_short(call.arguments, 80)})  arguments that are no JSON"
    if not isinstance(arguments, dict):
        return f"{call.name}({_short(call.arguments, 80)})"
    return f"{call.name}({', '.join(f'{name}={_argument(value)}' for name, value in arguments.items())})"


def _argument(value: object) -> str:
    if isinstance(value, str):
        return f"<{value.count(chr(10)) + 1} lines>" if "\n" in value else _short(value, 60)
    if isinstance(value, list):
        items = len(cast("list[object]", value))
        return f"<{items} {'item' if items == 1 else 'items'}>"
    return _short(json.dumps(value), 60)


def _timing(timing: TimingView) -> str:
    speedup = timing.speedup
    return (
        f"{_time(timing.candidate_us.value)} against {_time(timing.reference_us.value)}: {_times(speedup.value)} "
        f"({_times(speedup.low)} to {_times(speedup.high)}) {timing.claim}"
    )


def _diagnostic(diagnostic: DiagnosticView) -> str:
    return f"{diagnostic.place}: {diagnostic.message}" if diagnostic.place else diagnostic.message


def _time(microseconds: float) -> str:
    for unit, scale in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= scale:
            return f"{microseconds / scale:.3g} {unit}"
    return f"{microseconds:.3g} µs"


def _times(speedup: float) -> str:
    return f"{speedup:.3g}×" if speedup < 1000 else f"{speedup:.0f}×"


def _short(text: str, length: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= length else text[:length] + "…"


def _clean(text: str) -> str:
    return _CONTROL.sub("", text.expandtabs(4))


def _line(console: Console, text: str, style: str = "") -> None:
    from rich.text import Text

    console.print(Text(_clean(text), style=style), soft_wrap=True)
