"""Watching a run while another process writes it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from transcripts.events import Event, RunFinished
from transcripts.reading import events_file, is_live, parse_event

POLL = 0.2


def follow(run: Path) -> Iterator[Event]:
    """All events so far, then each new one as it is written; ends when the run has finished, or when no process writes
    it any more. Raises TranscriptError as `read_events` does."""
    number = 0
    rest = b""
    with events_file(run).open("rb") as file:
        while True:
            # Asked before reading: what a writer wrote before it went away is then read below.
            live = is_live(run)
            *lines, rest = (rest + file.read()).split(b"\n")
            for line in lines:
                number += 1
                event = parse_event(line, run, number)
                yield event
                if isinstance(event, RunFinished) and not file.peek(1):
                    return
            if not live:
                return
            time.sleep(POLL)
