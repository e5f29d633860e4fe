"""The run folder: written as things happen, safe against `kill -9` at any moment, held by one process at a time.

Every event is one `write` of one whole line to a file that is open for appending, so what was written survives the
death of this process at once. There is no fsync: a power cut may cost the last seconds, and an fsync costs more than a
turn of the loop may. All other files are written beside their place and renamed into it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import re
import time
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC
from pathlib import Path
from types import TracebackType
from typing import Self

from pydantic import TypeAdapter
from pydantic_core import PydanticSerializationError

from transcripts.events import EVENT, Event, JsonObject, RunStarted
from transcripts.reading import EVENTS, HEADER, RunLocked, TranscriptError, events_file, whole_length

RESULT = "result.json"
SOLUTION = "solution.py"

# Writes infinities and NaN as null, which `json.dumps` does not.
_JSON: TypeAdapter[JsonObject] = TypeAdapter(JsonObject)


class RunFolder:
    """One run folder, open for writing. Use it as a context manager, or call `close`."""

    def __init__(self, path: Path, descriptor: int) -> None:
        """For `create` and `open` only."""
        self.path = path
        self._descriptor = descriptor

    @classmethod
    def create(cls, root: Path, started: RunStarted) -> RunFolder:
        """Make `root/<UTC time>-<problem>/` with `run.json`, and `started` as its first event.

        Raises TranscriptError if that cannot be written.
        """
        stem = f"{started.time.astimezone(UTC):%Y%m%d-%H%M%S}-{_slug(started.problem)}"
        with _told(root):
            root.mkdir(parents=True, exist_ok=True)
            path = _make_new(root / stem)
            (path / "kernels").mkdir()
            folder = cls(path, _open_locked(path, os.O_CREAT))
        try:
            folder._write_header(started)
            folder.append(started)
        except TranscriptError:
            folder.close()
            raise
        return folder

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Take up an existing run; a torn last line is cut off.

        Raises RunLocked if a living process writes it, TranscriptError if it is no run folder.
        """
        events_file(path)
        with _told(path):
            folder = cls(path, _open_locked(path, 0))
            whole = whole_length((path / EVENTS).read_bytes())
            os.ftruncate(folder._descriptor, whole)
        return folder

    def append(self, event: Event) -> None:
        """Write one event. If it fails (disk full), the file ends with the event before it, and TranscriptError is
        raised."""
        line = _line(event)
        with _told(self.path):
            before = os.fstat(self._descriptor).st_size
            written = 0
            try:
                while written < len(line):
                    written += os.write(self._descriptor, line[written:])
            except BaseException:
                os.ftruncate(self._descriptor, before)
                raise

    def write_result(self, result: JsonObject) -> Path:
        """Write `result.json`; returns its path."""
        path = self.path / RESULT
        write_atomic(path, _JSON.dump_json(result, indent=2).decode() + "\n")
        return path

    def write_solution(self, source: str) -> Path:
        """Write `solution.py`, the fastest correct kernel; returns its path."""
        path = self.path / SOLUTION
        write_atomic(path, source)
        return path

    def close(self) -> None:
        """Let go of the file and of the lock. Safe to call twice."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write_header(self, header: RunStarted) -> None:
        write_atomic(self.path / HEADER, header.model_dump_json(indent=2, exclude={"event"}) + "\n")


def write_atomic(path: Path, text: str) -> None:
    """Write a text file so that a reader sees the old one or the new one, never half of it. Lone surrogates, which
    models do write now and then and UTF-8 does not know, become question marks."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with _told(path):
        try:
            draft.write_text(text, encoding="utf-8", errors="replace")
            draft.replace(path)
        except BaseException:
            draft.unlink(missing_ok=True)
            raise


def _line(event: Event) -> bytes:
    try:
        return EVENT.dump_json(event) + b"\n"
    except PydanticSerializationError:
        # A lone surrogate somewhere in what the model wrote; it becomes a question mark.
        text = json.dumps(event.model_dump(), default=str, ensure_ascii=False)
        return text.encode("utf-8", "replace") + b"\n"


def _slug(problem: str) -> str:
    return re.sub(r"[^A-Za-z0-9_]+", "-", Path(problem).stem).strip("-")[:60] or "problem"


def _make_new(path: Path) -> Path:
    """Make the folder, under a numbered name if two runs of one problem start in the same second."""
    number = 1
    while True:
        candidate = path if number == 1 else path.with_name(f"{path.name}-{number}")
        try:
            candidate.mkdir()
            return candidate
        except FileExistsError:
            number += 1


def _open_locked(run: Path, flags: int) -> int:
    # Readable, so that the same descriptor can be cut and tested; never inherited, or a child would keep the lock.
    descriptor = os.open(run / EVENTS, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | flags, 0o644)
    for _ in range(10):
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return descriptor
        except BlockingIOError:
            # `is_live` holds a shared lock for an instant; a writer holds its lock for the whole run.
            time.sleep(0.02)
    os.close(descriptor)
    raise RunLocked(f"Another process is writing {run}. Wait for it, stop it, or start another run.")


@contextmanager
def _told(path: Path) -> Generator[None]:
    """Turn an OSError into a TranscriptError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise TranscriptError(
                f"The disk is full: {path} could not be written. What was written before is whole. "
                "Make room, and run the same command again: it goes on from there."
            ) from error
        raise TranscriptError(
            f"{path} could not be written: {error.strerror}. Make it writable or choose another folder."
        ) from error
