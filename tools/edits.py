"""Exact edits of a source: old text → new text, each of which must occur exactly once."""

from __future__ import annotations

from difflib import SequenceMatcher
from typing import Annotated

from pydantic import Field

from tools.types import Record


class Edit(Record):
    old: Annotated[str, Field(description="text of the source, copied exactly, that occurs once", min_length=1)]
    new: Annotated[str, Field(description="the text that takes its place; empty deletes it")]


class EditMismatch(Record):
    """Why an edit was not made: `edit` counts from 1, `occurrences` is how often its old text occurs.

    `lines` are where it occurs, `nearest` is the passage of the source most like it (from line `nearest_line`).
    """

    edit: int
    occurrences: int
    lines: list[int] = Field(default_factory=list)
    nearest: str | None = None
    nearest_line: int | None = None


def apply_edits(source: str, edits: list[Edit]) -> str | EditMismatch:
    """Make the edits one after the other; the first that does not fit stops it, and nothing is changed."""
    for number, edit in enumerate(edits, start=1):
        lines = _places(source, edit.old)
        if len(lines) != 1:
            line, text = (None, None) if lines else _nearest(source, edit.old)
            return EditMismatch(edit=number, occurrences=len(lines), lines=lines[:10], nearest=text, nearest_line=line)
        source = source.replace(edit.old, edit.new)
    return source


def _places(source: str, text: str) -> list[int]:
    """The line of each occurrence; overlapping ones count, since they are as ambiguous as any."""
    lines: list[int] = []
    at = source.find(text)
    while at >= 0:
        lines.append(source.count("\n", 0, at) + 1)
        at = source.find(text, at + 1)
    return lines


def _nearest(source: str, wanted: str) -> tuple[int | None, str | None]:
    """The run of as many lines as `wanted` has that is most like it, with its first line's number."""
    lines = source.splitlines()
    height = min(max(1, len(wanted.strip("\n").splitlines())), 40)
    best, best_at = 0.0, None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(wanted.strip("\n")[:4000])
    for at in range(max(1, len(lines) - height + 1)):
        matcher.set_seq1("\n".join(lines[at : at + height])[:4000])
        # The two cheap upper bounds spare nearly every exact comparison.
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best and (ratio := matcher.ratio()) > best:
            best, best_at = ratio, at
    if best_at is None or best < 0.3:
        return None, None
    return best_at + 1, "\n".join(lines[best_at : best_at + height])
