"""What a reader of a run sees, whole or while it is being written."""

from __future__ import annotations

import io
import json
import threading
from pathlib import Path

import pytest
from rich.console import Console

from transcripts import RunFolder, follow, read_events, render_events, render_run, run_as_json
from transcripts.events import (
    BestChanged,
    CandidateSeen,
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
from transcripts.messages import Reply, SystemMessage, ToolCall, Usage

BAD = ToolCall(id="a", name="evaluate_kernel", arguments=json.dumps({"source": "x\ny\nz"}))
GOOD = ToolCall(id="b", name="edit_kernel", arguments=json.dumps({"id": "k1", "edits": [{}, {}]}))
BROKEN = ToolCall(id="c", name="submit", arguments='{"id": ')

INTERVAL = {"value": 2.0, "low": 1.9, "high": 2.1}
TIMING: JsonObject = {
    "candidate_us": {"value": 1234.0, "low": 1200.0, "high": 1260.0},
    "reference_us": {"value": 2468.0, "low": 2400.0, "high": 2500.0},
    "speedup": dict(INTERVAL),
    "claim": "faster",
    "method": "fields that nobody shows are no hindrance",
}

EVENTS: list[Event] = [
    MessagesAdded(messages=(SystemMessage(text="You write kernels."),)),
    ReplyReceived(
        turn=1,
        reply=Reply(
            text="\n".join(f"line {n} [bold]not markup[/bold] \x1b[31mnot red" for n in range(12)),
            tool_calls=(BAD,),
            usage=Usage(prompt_tokens=12345, completion_tokens=67, cached_tokens=2000),
            cost_usd=0.0123,
            seconds=4.25,
            retries=2,
        ),
    ),
    ToolCallStarted(turn=1, call=BAD),
    CandidateSeen(id="k1", source_path="kernels/k001/source.py", built=False, verdict="compile_error"),
    ToolResult(
        turn=1,
        call_id="a",
        name="evaluate_kernel",
        record={
            "kind": "kernel",
            "kernel": "k1",
            "verdict": "compile_error",
            "build": {
                "ok": False,
                "diagnostics": [
                    {"severity": "error", "message": f"identifier {n} is undefined", "file": "x.cu", "line": n}
                    for n in range(1, 6)
                ],
                "findings": [{"code": "c", "severity": "error", "summary": "a header is missing"}],
            },
        },
        text="…",
        seconds=1.5,
    ),
    ErrorSeen(source="model", kind="ServerFailed", message="502 twice"),
    Resumed(),
    Nudged(turn=2, reason="no_tool_call", in_a_row=2),
    ReplyReceived(turn=2, reply=Reply(tool_calls=(GOOD, BROKEN))),
    ToolCallStarted(turn=2, call=GOOD),
    CandidateSeen(
        id="k2", source_path="kernels/k002/source.py", parent="k1", verdict="correct", time_us=1234.0, speedup=2
    ),
    BestChanged(id="k2", time_us=1234.0, speedup=2.0),
    ToolResult(
        turn=2,
        call_id="b",
        name="edit_kernel",
        record={"kind": "kernel", "kernel": "k2", "edited_from": "k1", "verdict": "correct", "timing": TIMING},
        text="…",
        seconds=2.0,
    ),
    ToolCallStarted(turn=2, call=BROKEN),
    ToolResult(
        turn=2,
        call_id="c",
        name="submit",
        record={"kind": "refusal", "tool": "submit", "code": "broken_json", "problems": ["Expecting value"]},
        text="…",
        seconds=0.0,
    ),
    Confirmed(id="k2", confirmed=True, record={"verdict": "correct", "timing": TIMING}),
]
END = RunFinished(
    reason="turns",
    result={
        "solved": True,
        "kernel": "k2",
        "speedup": 2.0,
        "speedup_low": 1.9,
        "speedup_high": 2.1,
        "solution": "solution.py",
    },
)


def start(tmp_path: Path) -> RunFolder:
    return RunFolder.create(
        tmp_path,
        RunStarted(
            problem="pointwise",
            model="some-model",
            config={},
            device={"name": "a GPU"},
            sandbox="namespaces",
            versions={"torch": "9"},
        ),
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    with start(tmp_path) as folder:
        for event in [*EVENTS, END]:
            folder.append(event)
        folder.write_solution("x = 1\n")
    return folder.path


def shown(run: Path) -> str:
    console = Console(file=io.StringIO(), width=100, color_system=None)
    render_run(run, console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


@pytest.mark.parametrize(
    "what",
    [
        "problem  pointwise",
        "model  some-model",
        "device  a GPU",
        "sandbox  namespaces",
        "torch 9",
        "system: You write kernels.",
        "turn 1 · 4.2 s · 12,345 (2,000 cached) + 67 tokens · $0.0123 · 2 retries",
        "line 0 [bold]not markup[/bold] not red",
        "… 4 more lines",
        "▸ evaluate_kernel(source=<3 lines>)",
        "k1  compile_error  1.5 s",
        "x.cu:1: identifier 1 is undefined",
        "… 2 more errors",
        "error: a header is missing",
        "ServerFailed (model): 502 twice",
        "taken up again",
        "nudged: no tool call, 2 in a row",
        "(no words)",
        "▸ edit_kernel(id=k1, edits=<2 items>)",
        "k2  from k1  correct  2.0 s  1.23 ms against 2.47 ms: 2× (1.9× to 2.1×) faster",
        "★ fastest so far: k2, 1.23 ms, 2×",
        "arguments that are no JSON",
        "submit  broken json",
        "Expecting value",
        "k2 in fresh processes, with fresh seeds and a stock build: confirmed",
        "k2 ★",
        "ended: turns",
        "spent: 2 turns",
        "result: k2, 2× (1.9× to 2.1×)",
        "solution.py",
    ],
)
def test_review_shows(run: Path, what: str) -> None:
    assert what in shown(run)


def test_review_keeps_escape_sequences_from_the_terminal(run: Path) -> None:
    assert "\x1b" not in shown(run)


def test_review_of_an_unfinished_run_and_of_one_with_nothing_correct(tmp_path: Path) -> None:
    with start(tmp_path) as folder:
        for event in EVENTS[:6]:
            folder.append(event)
        assert "has not ended" in shown(folder.path)
        folder.append(RunFinished(reason="turns", result={"solved": False}))
    assert "no correct kernel" in shown(folder.path)
    assert "solution" not in shown(folder.path)


@pytest.mark.parametrize(
    "record",
    [{}, {"kind": "new_tool", "verdict": 3}, {"timing": "soon"}, {"build": {"diagnostics": [7]}}, {"kernel": None}],
)
def test_records_of_another_form_do_not_break_the_review(tmp_path: Path, record: JsonObject) -> None:
    with start(tmp_path) as folder:
        folder.append(ToolResult(turn=1, call_id="a", name="some_tool", record=record, text="", seconds=1.0))
    assert "some_tool  done" in shown(folder.path)


def test_json_document(run: Path) -> None:
    document = json.loads(json.dumps(run_as_json(run)))
    assert document["result"] == END.result
    assert (document["problem"], document["turns"], document["best"], document["reason"]) == (
        "pointwise",
        2,
        "k2",
        "turns",
    )
    assert [candidate["id"] for candidate in document["candidates"]] == ["k1", "k2"]
    assert len(document["events"]) == len(EVENTS) + 2
    assert document["usage"]["prompt_tokens"] == 12345


def test_follow_sees_events_as_they_are_written(tmp_path: Path) -> None:
    folder = start(tmp_path)
    seen: list[Event] = []
    first = threading.Event()

    def watch() -> None:
        for event in follow(folder.path):
            seen.append(event)
            first.set()

    watcher = threading.Thread(target=watch)
    watcher.start()
    assert first.wait(30)
    for event in [*EVENTS, END]:
        folder.append(event)
    watcher.join(30)
    assert not watcher.is_alive()
    folder.close()
    assert seen == read_events(folder.path)


def test_follow_ends_when_the_writer_is_gone(tmp_path: Path) -> None:
    folder = start(tmp_path)
    folder.append(EVENTS[0])
    folder.close()
    with (folder.path / "events.jsonl").open("ab") as file:
        file.write(b'{"torn')
    console = Console(file=io.StringIO(), width=100)
    render_events(follow(folder.path), console)
    assert isinstance(console.file, io.StringIO)
    assert "You write kernels." in console.file.getvalue()
