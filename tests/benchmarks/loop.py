"""Overhead of the loop itself: what a turn takes besides the model and the tools.

A recorded model sends the same candidate 100 times: it is built, checked and timed once, and shown from then on with
its whole report, so that prompts, conversation and log grow as in a long run. The figures are read off the log.

    python tests/benchmarks/loop.py
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from rich.console import Console

from agent.budget import Limits
from agent.progress import Progress
from agent.session import Request, run_problem
from agent.sources import recorded_source
from problems import load_problem
from tools.evaluator import EvaluatorSettings
from transcripts import RunFolder, find_example, read_events
from transcripts.events import MessagesAdded, ReplyReceived, RunStarted, ToolResult
from transcripts.messages import Reply, ToolCall

TURNS = 100
EXAMPLE = "rms_norm_residual_cpu"
LIMIT_MS = 20.0


def record(root: Path) -> Path:
    """A transcript with nothing in it but the replies."""
    source = (find_example(EXAMPLE) / "solution.py").read_text(encoding="utf-8")
    arguments = json.dumps({"source": source})
    with RunFolder.create(root, RunStarted(problem="overhead", model="benchmark", config={})) as folder:
        for turn in range(1, TURNS + 1):
            call = ToolCall(id=f"c{turn}", name="evaluate_kernel", arguments=arguments)
            folder.append(ReplyReceived(turn=turn, reply=Reply(text="Once more.", tool_calls=(call,))))
    return folder.path


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        request = Request(
            spec=load_problem("rms_norm_residual"),
            settings=EvaluatorSettings(device="cpu", size="small"),
            limits=Limits(max_turns=TURNS),
            source=recorded_source(str(record(root / "recording"))),
            runs=root / "runs",
        )
        solved = run_problem(request, Progress(Console(), quiet=True))
        events = read_events(solved.folder)
        log_bytes = (solved.folder / "events.jsonl").stat().st_size
    began = next(event.time for event in events if isinstance(event, MessagesAdded))
    results = [event for event in events if isinstance(event, ToolResult)]
    replies = [event for event in events if isinstance(event, ReplyReceived)]
    total = (results[-1].time - began).total_seconds()
    tools = sum(event.seconds for event in results)
    model = sum(event.reply.seconds for event in replies)
    print(f"{len(results)} turns in {total:.2f} s: tools {tools:.2f} s, model {model:.3f} s; log {log_bytes} bytes")
    print(f"overhead per turn: {1e3 * (total - tools - model) / len(results):.2f} ms (limit {LIMIT_MS:g} ms)")


if __name__ == "__main__":
    main()
