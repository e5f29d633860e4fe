"""`agent replay`: review a run in the terminal."""

from __future__ import annotations

from json import dumps
from pathlib import Path
from typing import Annotated

import typer

from agent.cli.errors import told


def replay(
    run: Annotated[str, typer.Argument(help="A run folder, or the name of a bundled transcript.")],
    json: Annotated[
        bool, typer.Option("--json", help="Print JSON: one document, with --follow one event a line.")
    ] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on while the run is still being written.")] = False,
) -> None:
    """Print what happened in RUN, from the first prompt to the result."""
    with told(kept=False):
        from rich.console import Console

        from transcripts import find_example, render_events, render_run, run_as_json
        from transcripts import follow as follow_events
        from transcripts.events import EVENT

        folder = Path(run) if Path(run).is_dir() else find_example(run)
        if json and follow:
            for event in follow_events(folder):
                print(EVENT.dump_json(event).decode(), flush=True)
        elif json:
            print(dumps(run_as_json(folder), indent=2, ensure_ascii=False))
        elif follow:
            render_events(follow_events(folder), Console(highlight=False))
        else:
            render_run(folder, Console(highlight=False))
