"""`agent replay`: review a run in the terminal."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.errors import fail, told


def replay(
    run: Annotated[
        str, typer.Argument(metavar="RUN", help="A run folder (below runs/), or the name of a bundled recording.")
    ],
    json: Annotated[
        bool, typer.Option("--json", help="Print the run as one JSON document; with --follow, one event on a line.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on showing what happens while the run is still going on.")
    ] = False,
) -> None:
    """Print what happened in RUN, from the first prompt to the result."""
    with told(kept=False):
        from rich.console import Console

        from transcripts import find_example, render_events, render_run, run_as_json
        from transcripts import follow as follow_events
        from transcripts.events import EVENT

        folder = Path(run) if run and Path(run).is_dir() else find_example(run)
        # `runs` itself, or that of a batch, whose runs lie in it.
        within = [path.parent for depth in ("*", "*/*") for path in folder.glob(f"{depth}/events.jsonl")]
        if within and not (folder / "events.jsonl").exists():
            newest = max(within, key=lambda path: path.name)
            fail(f"{run} is a folder of runs, not a run. Name one of them; the newest is {newest}.")
        if json and follow:
            for event in follow_events(folder):
                print(EVENT.dump_json(event).decode(), flush=True)
        elif json:
            print(dumps(run_as_json(folder), indent=2, ensure_ascii=False))
        elif follow:
            render_events(follow_events(folder), Console(highlight=False))
        else:
            render_run(folder, Console(highlight=False))
