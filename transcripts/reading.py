"""Reading run folders: whole ones, ones whose writer was killed, ones that are still being written."""

from __future__ import annotations

import fcntl
import json
from pathlib import Path

from pydantic import ValidationError

from transcripts.events import EVENT, SCHEMA_VERSION, Event, JsonObject, RunFinished, RunStarted

EVENTS = "events.jsonl"
HEADER = "run.json"

# A run that ended for one of these reasons is taken up again by the same command.
RESUMABLE = frozenset({"interrupted"})


class TranscriptError(Exception):
    """A run folder cannot be written or read. The message says why and what to do next."""


class RunLocked(TranscriptError):  # noqa: N818
    """Another living process writes this run."""


def read_header(run: Path) -> RunStarted:
    """`run.json` of a run folder. Raises TranscriptError if there is none, or it is damaged."""
    try:
        return RunStarted.model_validate_json((run / HEADER).read_bytes())
    except FileNotFoundError:
        raise TranscriptError(f"{run} has no {HEADER}: it is no run folder. Name one below runs/.") from None
    except ValidationError as error:
        raise TranscriptError(f"{run / HEADER} is damaged ({error.error_count()} errors).") from None


def read_events(run: Path) -> list[Event]:
    """All events of a run folder, in order; a torn last line is left out.

    Raises TranscriptError if there is no such run, if a line before the last is damaged, or if a newer version of this
    program wrote it.
    """
    data = events_file(run).read_bytes()
    return [parse_event(line, run, n) for n, line in enumerate(data[: whole_length(data)].splitlines(), 1)]


def parse_event(line: bytes, run: Path, number: int) -> Event:
    """One line of `events.jsonl` as an event; `run` and `number` are for the message of the TranscriptError."""
    try:
        return EVENT.validate_json(line)
    except ValidationError as error:
        version = _schema_version(line)
        if version is not None and version > SCHEMA_VERSION:
            raise TranscriptError(
                f"{run} was written by a newer version (schema {version}, this one reads {SCHEMA_VERSION}). "
                "Upgrade with `pip install -U kernel-agent`."
            ) from None
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"])
        raise TranscriptError(f"{run / EVENTS}, line {number} is damaged ({where}: {first['msg']}).") from None


def is_live(run: Path) -> bool:
    """True while a living process has the run open for writing."""
    with events_file(run).open("rb") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
    return False


def find_unfinished(root: Path, config: JsonObject) -> Path | None:
    """The newest run below `root` that was started with an equal `config` and has not come to its end, or None."""
    if not root.is_dir():
        return None
    for run in sorted((path for path in root.iterdir() if (path / EVENTS).exists()), reverse=True):
        try:
            if read_header(run).config != config:
                continue
            last = read_events(run)[-1:]
        except TranscriptError:
            # A damaged run is not taken up again; `agent replay` says what is wrong with it.
            continue
        if last and (not isinstance(last[0], RunFinished) or last[0].reason in RESUMABLE):
            return run
    return None


def find_example(name: str) -> Path:
    """The folder of a bundled recording. Raises TranscriptError with the names there are."""
    root = Path(__file__).parent / "examples"
    names = sorted(path.parent.name for path in root.glob(f"*/{EVENTS}"))
    if name not in names:
        raise TranscriptError(
            f"There is no run folder and no bundled transcript {name!r}. Bundled are: {', '.join(names) or 'none'}."
        )
    return root / name


def events_file(run: Path) -> Path:
    """`events.jsonl` of a run folder. Raises TranscriptError if there is none."""
    file = run / EVENTS
    if not file.is_file():
        raise TranscriptError(f"{run} has no {EVENTS}: it is no run folder. Name one below runs/.")
    return file


def whole_length(data: bytes) -> int:
    """The length of `data` without a torn last line: one with no newline, or one that is no JSON."""
    end = data.rfind(b"\n") + 1
    last = data[data.rfind(b"\n", 0, max(end - 1, 0)) + 1 : end]
    try:
        if last:
            json.loads(last)
    except ValueError:
        return end - len(last)
    return end


def _schema_version(line: bytes) -> int | None:
    try:
        version = json.loads(line).get("schema_version")
    except (ValueError, AttributeError):
        return None
    return version if isinstance(version, int) else None
