"""A batch on disk: the same command goes on with it, and never two processes at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.batch import Asked, Batch, Row
from transcripts import RunLocked

ASKED = Asked(of="set", problems=("a", "b"), options={})


def test_the_same_command_goes_on_with_an_unfinished_batch(tmp_path: Path):
    first = Batch.take_up(tmp_path, ASKED, fresh=False)
    first.add(Row(problem="a", failure="none"))
    folder = first.folder
    del first
    again = Batch.take_up(tmp_path, ASKED, fresh=False)
    assert again.folder == folder
    assert list(again.rows()) == ["a"]
    again.add(Row(problem="b", failure="none"))
    assert Batch.take_up(tmp_path, ASKED, fresh=False).folder != folder


def test_a_batch_that_is_at_work_is_left_alone(tmp_path: Path):
    working = Batch.take_up(tmp_path, ASKED, fresh=False)
    with pytest.raises(RunLocked, match=r"at work already.*--new"):
        Batch.take_up(tmp_path, ASKED, fresh=False)
    other = Batch.take_up(tmp_path, ASKED, fresh=True)
    assert other.folder != working.folder
    another = Batch.take_up(tmp_path, ASKED.model_copy(update={"of": "other"}), fresh=False)
    assert another.folder not in (working.folder, other.folder)
