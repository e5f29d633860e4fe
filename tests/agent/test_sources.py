"""Which recording a batch takes for a problem."""

from __future__ import annotations

import shutil
from pathlib import Path

from agent.sources import recordings
from transcripts import find_example, read_header


def test_of_several_runs_the_newest_that_holds_a_reply_is_taken(tmp_path: Path):
    example = find_example("rms_norm_residual_cpu")
    for name in ("2026-01-01", "2026-01-02", "2026-01-03"):
        shutil.copytree(example, tmp_path / name)
    # As a run leaves it that ended before its first reply.
    (tmp_path / "2026-01-03" / "events.jsonl").write_text("")
    (tmp_path / "notes").mkdir()
    assert recordings(tmp_path) == {read_header(example).problem: tmp_path / "2026-01-02"}
    (tmp_path / "2026-01-02" / "events.jsonl").unlink()
    assert recordings(tmp_path) == {read_header(example).problem: tmp_path / "2026-01-01"}
    assert recordings(tmp_path / "2026-01-01") == {read_header(example).problem: tmp_path / "2026-01-01"}
    assert recordings(tmp_path / "nowhere") == {}
