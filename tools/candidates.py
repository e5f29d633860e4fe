"""The candidates of one run: their ids, their sources, what is known of each, and which one leads.

Everything is kept on disk as it happens (`k001/source.py`, `k001/state.json`), so a run that is killed finds its
candidates, with every verdict, when it starts again.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from tools.types import BuildResult, CorrectnessResult, Record, TimingResult, Verdict

_FENCE = re.compile(r"\A\s*```[\w+-]*[ \t]*\n(?P<body>.*?)\n?```\s*\Z", re.DOTALL)


class CandidateState(Record):
    """What is known of one candidate: the content of its `state.json`."""

    id: str
    edited_from: str | None = None
    build: BuildResult | None = None
    correctness: CorrectnessResult | None = None
    timing: TimingResult | None = None
    confirmed: bool | None = Field(default=None, description="the verdict of the final confirmation, once there is one")

    @property
    def verdict(self) -> Verdict | None:
        """The furthest verdict; None for a candidate that has not been judged (built or not)."""
        if self.build is not None and not self.build.ok:
            return self.build.verdict
        return self.correctness.verdict if self.correctness else None

    @property
    def correct(self) -> bool:
        return self.verdict is Verdict.CORRECT


@dataclass(frozen=True)
class Candidate:
    """One source with its folder and what is known of it."""

    source: str
    folder: Path
    state: CandidateState

    @property
    def id(self) -> str:
        return self.state.id


def clean_source(text: str) -> str:
    """The text as a file: one enclosing Markdown fence is taken off, and it ends with a newline."""
    fenced = _FENCE.match(text)
    body = fenced["body"] if fenced else text
    return body.rstrip() + "\n" if body.strip() else ""


class Candidates:
    """The candidates under `folder`, which is created with the first one. Ids are k1, k2, … in order of arrival."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._all: dict[str, Candidate] = {}
        for path in sorted(folder.glob("k*/source.py")):
            number = path.parent.name.removeprefix("k")
            if number.isdigit():
                self._load(f"k{int(number)}", path)

    def _load(self, name: str, path: Path) -> None:
        state_path = path.with_name("state.json")
        state = (
            CandidateState.model_validate_json(state_path.read_bytes())
            if state_path.exists()
            else CandidateState(id=name)
        )
        self._all[name] = Candidate(path.read_text(encoding="utf-8"), path.parent, state)

    def __iter__(self) -> Iterator[Candidate]:
        return iter(self._all.values())

    def __len__(self) -> int:
        return len(self._all)

    @property
    def ids(self) -> list[str]:
        return list(self._all)

    def get(self, name: str) -> Candidate | None:
        return self._all.get(name.strip())

    def add(self, source: str, edited_from: str | None = None) -> tuple[Candidate, bool]:
        """The candidate with this source and whether it is new; the same source keeps the id it has."""
        for known in self:
            if known.source == source:
                return known, False
        number = max((int(name[1:]) for name in self._all), default=0) + 1
        folder = self._folder / f"k{number:03d}"
        folder.mkdir(parents=True, exist_ok=True)
        candidate = Candidate(source, folder, CandidateState(id=f"k{number}", edited_from=edited_from))
        _write_whole(folder / "source.py", source)
        self._all[candidate.id] = candidate
        return self._save(candidate), True

    def update(self, name: str, **known: object) -> Candidate:
        """Record newly known fields of a candidate, on disk first."""
        candidate = self._all[name]
        return self._save(replace(candidate, state=candidate.state.model_copy(update=known)))

    def _save(self, candidate: Candidate) -> Candidate:
        _write_whole(candidate.folder / "state.json", candidate.state.model_dump_json(indent=1))
        self._all[candidate.id] = candidate
        return candidate

    def ranking(self) -> list[Candidate]:
        """The correct candidates that were timed, fastest first; one whose confirmation failed is not among them.

        Ranked by the paired speed-up over the reference, not by absolute time: the reference was timed interleaved
        with each candidate, so the ratio is what survives a change of clocks between two measurements.
        """
        timed = [(c.state.timing.speedup.value, c) for c in self if c.state.correct and c.state.timing is not None]
        eligible = [pair for pair in timed if pair[1].state.confirmed is not False]
        return [candidate for _, candidate in sorted(eligible, key=lambda pair: -pair[0])]

    @property
    def best(self) -> Candidate | None:
        return next(iter(self.ranking()), None)

    def unjudged(self) -> list[Candidate]:
        """Candidates that nothing speaks against and that lack a verdict or a time, newest first."""
        return [
            c
            for c in reversed(list(self))
            if c.state.build is not None
            and c.state.build.ok
            and (c.state.verdict in (None, Verdict.JUDGE_ERROR) or (c.state.correct and c.state.timing is None))
        ]


def _write_whole(path: Path, text: str) -> None:
    """Write so that a reader, or a run that comes back after a kill, sees the old text or the new one."""
    temporary = path.with_name(path.name + ".part")
    temporary.write_text(text, encoding="utf-8")
    os.replace(temporary, path)  # noqa: PTH105 - Path.replace does the same, os.replace says atomic
