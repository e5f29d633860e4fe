"""What happened in a run: the event schema, the run folder that is written as things happen, and its review.

Imports nothing else of ours, so a run can be read where no tool and no model is installed. `transcripts.events` and
`transcripts.messages` hold the records; `examples/` the bundled recordings, each a run folder like any other.
"""

from transcripts.follow import follow
from transcripts.log import RunFolder
from transcripts.reading import (
    RunLocked,
    TranscriptError,
    find_example,
    find_unfinished,
    is_live,
    read_events,
    read_header,
)
from transcripts.restore import PendingCall, RestoredRun, restore
from transcripts.review import render_events, render_run, run_as_json

__all__ = [
    "PendingCall",
    "RestoredRun",
    "RunFolder",
    "RunLocked",
    "TranscriptError",
    "find_example",
    "find_unfinished",
    "follow",
    "is_live",
    "read_events",
    "read_header",
    "render_events",
    "render_run",
    "restore",
    "run_as_json",
]
