"""`agent replay`: review a run in the terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from agent.cli.errors import told


def replay(
    run: Annotated[str, typer.Argument(help="A run folder, or the name of a bundled transcript.")],
    json: Annotated[bool, typer.Option("--json", help="Print the events, one JSON object a line.")] = False,
    follow: Annotated[bool, typer.Option("--follow", help="Go on while the run is still being written.")] = False,
) -> None:
    """Print what happened in RUN, from the first prompt to the result."""
    with told():
        from transcripts import find_example

        folder = Path(run) if Path(run).is_dir() else find_example(run)
        print(folder, json, follow)
