"""Many problems, one after another, in a folder of their own, so that a batch that is stopped goes on like a run does.

`<runs>/<time>-batch-<set>/` holds `batch.json` (what was asked), `rows.jsonl` (what is done) and the runs themselves.
"""

from __future__ import annotations

import fcntl
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from agent.progress import Progress
from agent.result import RunResult
from agent.session import Request, run_problem
from agent.stops import Abandoned, ModelUnavailable, StopReason
from problems import ProblemError
from transcripts import RunLocked
from transcripts.log import write_atomic


class Asked(BaseModel):
    """Two batches with equal `Asked` are the same command."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    of: str
    problems: tuple[str, ...]
    options: dict[str, JsonValue]


class Row(BaseModel):
    """One problem of a batch: its result, or why there is none. `folder` is relative to the batch's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    problem: str
    folder: str | None = None
    result: RunResult | None = None
    failure: str | None = None


@dataclass(frozen=True)
class Batch:
    """A batch on disk. `rows` are those that need no further work."""

    folder: Path
    asked: Asked
    _held: IO[str] = field(compare=False, repr=False)
    """Locked while this process is at it."""

    @classmethod
    def take_up(cls, root: Path, asked: Asked, *, fresh: bool) -> Batch:
        """The newest unfinished batch that asked the same, or a new one. Raises RunLocked where another process is at
        it."""
        if not fresh:
            for path in sorted(root.glob("*-batch-*/batch.json"), reverse=True):
                if path.read_text(encoding="utf-8") != asked.model_dump_json():
                    continue
                batch = cls(path.parent, asked, path.open(encoding="utf-8"))
                if len(batch.rows()) < len(asked.problems):
                    batch._lock()
                    return batch
        slug = re.sub(r"\W+", "-", asked.of, flags=re.ASCII).strip("-")[-40:] or "set"
        folder = root / f"{datetime.now(UTC):%Y%m%d-%H%M%S-%f}-batch-{slug}"
        folder.mkdir(parents=True)
        write_atomic(folder / "batch.json", asked.model_dump_json())
        batch = cls(folder, asked, (folder / "batch.json").open(encoding="utf-8"))
        batch._lock()
        return batch

    def _lock(self) -> None:
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise RunLocked(
                f"This batch is at work already, in {self.folder}. Wait for it or stop it; --new begins another one."
            ) from None

    def rows(self) -> dict[str, Row]:
        """What is done, by problem. A torn last line is left out, and its problem done again."""
        path = self.folder / "rows.jsonl"
        rows: dict[str, Row] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
            try:
                row = Row.model_validate_json(line)
            except ValidationError:
                continue
            rows[row.problem] = row
        return rows

    def add(self, row: Row) -> None:
        # A torn line of a process that was killed must not swallow this one.
        with (self.folder / "rows.jsonl").open("a", encoding="utf-8") as file:
            file.write("\n" + row.model_dump_json() + "\n")


def run_batch(batch: Batch, request: Callable[[str], Request], progress: Callable[[], Progress]) -> Iterator[Row]:
    """Yield one row a problem, as each is done.

    An unusable problem and one on which the evaluator broke down are rows with a `failure`; the latter is tried again
    when the batch is. A model that can't be reached would fail for every problem, so `ModelUnavailable` passes, as do
    ModelError and TranscriptError. An interrupted run is the last row.
    """
    done = batch.rows()
    for problem in batch.asked.problems:
        if problem in done:
            yield done[problem]
            continue
        try:
            solved = run_problem(replace(request(problem), runs=batch.folder), progress())
        except ProblemError as error:
            row = Row(problem=problem, failure=str(error))
        except ModelUnavailable:
            raise
        except Abandoned as error:
            yield Row(problem=problem, failure=str(error))
            continue
        else:
            row = Row(problem=problem, folder=solved.folder.name, result=solved.result)
            if solved.result.reason == StopReason.INTERRUPTED:
                yield row
                return
        batch.add(row)
        yield row
