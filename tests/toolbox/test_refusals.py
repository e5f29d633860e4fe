"""Calls that can't be carried out: each becomes a record and a text that says what to write instead."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from prompts import render
from tools.evaluator import Evaluator
from tools.toolbox import KernelReport, Refusal, Toolbox

SOURCE = "import torch\nx = 1\ny = 2\nx = 1\n"


@pytest.fixture
def toolbox(tmp_path: Path) -> Toolbox:
    # None of these calls may reach an evaluator: one that does fails on the None.
    box = Toolbox(cast(Evaluator, None), tmp_path / "kernels")
    box.candidates.add(SOURCE)
    return box


def refused(toolbox: Toolbox, name: str, arguments: Any) -> tuple[Refusal, str]:
    record = toolbox.call(name, arguments if isinstance(arguments, str) else json.dumps(arguments))
    assert isinstance(record, Refusal)
    text = render(record.kind, report=record)
    assert not text.startswith("ERROR")
    return record, text


def test_an_unknown_tool_is_answered_with_the_tools_there_are(toolbox: Toolbox):
    record, text = refused(toolbox, "run_shell", {})
    assert record.code == "unknown_tool"
    assert all(name in text for name in toolbox.tools)


def test_broken_json_is_quoted_and_explained(toolbox: Toolbox):
    record, text = refused(toolbox, "evaluate_kernel", '{"source": "import torch')
    assert record.code == "broken_json"
    assert '{"source": "import torch' in text
    assert "`\\n`" in text


def test_an_unknown_argument_is_named_beside_the_known_ones(toolbox: Toolbox):
    record, text = refused(toolbox, "evaluate_kernel", {"code": "x"})
    assert record.code == "bad_arguments"
    assert "code" in text
    assert "source, id" in text


@pytest.mark.parametrize("arguments", [{}, {"source": "x = 1", "id": "k1"}, {"id": None}])
def test_exactly_one_of_source_and_id(toolbox: Toolbox, arguments: dict[str, str]):
    record, text = refused(toolbox, "evaluate_kernel", arguments)
    assert record.code == "one_of_source_or_id"
    assert "k1" in text


@pytest.mark.parametrize("source", ["", "   \n", "```python\n```"])
def test_an_empty_source(toolbox: Toolbox, source: str):
    assert refused(toolbox, "compile_kernel", {"source": source})[0].code == "empty_source"


@pytest.mark.parametrize("tool", ["evaluate_kernel", "compile_kernel", "run_correctness", "time_kernel", "submit"])
def test_an_unknown_id_is_answered_with_the_ids_there_are(toolbox: Toolbox, tool: str):
    record, text = refused(toolbox, tool, {"id": "k7"})
    assert record.code == "unknown_id"
    assert "`k7`" in text
    assert "k1" in text


def test_an_edit_of_a_text_that_occurs_twice(toolbox: Toolbox):
    record, text = refused(toolbox, "edit_kernel", {"id": "k1", "edits": [{"old": "x = 1", "new": "x = 3"}]})
    assert record.code == "edit_mismatch"
    assert "2 times" in text
    assert "2, 4" in text
    assert toolbox.candidates.ids == ["k1"]


def test_an_edit_of_a_text_that_is_not_there_shows_the_nearest(toolbox: Toolbox):
    _, text = refused(toolbox, "edit_kernel", {"id": "k1", "edits": [{"old": "y  =  2", "new": "y = 3"}]})
    assert "nowhere" in text
    assert "line 3" in text
    assert "y = 2" in text


def test_an_edit_that_changes_nothing(toolbox: Toolbox):
    record, _ = refused(toolbox, "edit_kernel", {"id": "k1", "edits": [{"old": "y = 2", "new": "y = 2"}]})
    assert record.code == "edit_changes_nothing"


def test_an_edit_that_leaves_nothing(toolbox: Toolbox):
    record, _ = refused(toolbox, "edit_kernel", {"id": "k1", "edits": [{"old": SOURCE, "new": ""}]})
    assert record.code == "empty_source"


def test_an_edit_may_be_saved_without_being_evaluated(toolbox: Toolbox):
    arguments = {"id": "k1", "edits": [{"old": "y = 2", "new": "y = 3"}], "evaluate": False}
    record = toolbox.call("edit_kernel", json.dumps(arguments))
    assert isinstance(record, KernelReport)
    assert (record.kernel, record.edited_from, record.build) == ("k2", "k1", None)
    assert "k2" in render(record.kind, report=record)
    candidate = toolbox.candidates.get("k2")
    assert candidate is not None
    assert candidate.source == SOURCE.replace("y = 2", "y = 3")
