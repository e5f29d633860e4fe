"""`run_experiment`: what a script prints comes back, however it ends, and it is held as a candidate is."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import load_problem
from prompts import render
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.experiment import Experiment
from tools.experiment.runner import MOST_OUTPUT
from tools.reports import ExperimentReport, kernels_of
from tools.toolbox import Refusal, Toolbox

# Writes into the socket on which its end would be told.
SPOIL = """
import os
for fd in range(3, 30):
    if os.path.exists(f"/proc/self/fd/{fd}") and "socket" in os.readlink(f"/proc/self/fd/{fd}"):
        os.write(fd, b"junk" * 9)
"""

# pybind11 alone: torch's headers would take many seconds to compile.
BUILDS = '''
import torch
from torch.utils.cpp_extension import load_inline
{before}
source = r"""
#include <pybind11/pybind11.h>
#include <cstdio>
int f(int x) {{ std::printf("from C++ with %d\\n", x); return {result}; }}
"""
ext = load_inline(name="experiment_ext", cpp_sources=source, functions=["f"], no_implicit_headers=True,
                  with_pytorch_error_handling=False)
if __name__ == "__main__":
    print("then Python with", ext.f(20))
'''


@pytest.fixture(scope="module")
def secret_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    (folder / "solution.py").write_text("what another run has found")
    return folder


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest, secret_folder: Path) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(
        device="cpu", size="small", cache_dir=cache.mkdir("agent-builds"), hidden=(secret_folder,)
    )
    with Evaluator(load_problem("elementwise_chain"), settings) as evaluator:
        yield evaluator


@pytest.fixture
def toolbox(evaluator: Evaluator, tmp_path: Path) -> Toolbox:
    return Toolbox(evaluator, tmp_path / "kernels")


def ran(toolbox: Toolbox, source: str, **arguments: object) -> tuple[Experiment, str]:
    record = toolbox.call("run_experiment", json.dumps({"source": source, **arguments}))
    assert isinstance(record, ExperimentReport), record
    text = render(record.kind, report=record)
    assert "counts for no candidate" in text or record.experiment.ended == "not_built"
    assert kernels_of(record) == []
    assert toolbox.candidates.ids == []
    return record.experiment, text


def test_a_question_about_torch_is_answered(toolbox: Toolbox):
    found, text = ran(toolbox, "import torch\nx = torch.eye(3)\nprint('sum', (x @ x).sum().item())\n")
    assert (found.ended, found.output, found.build) == ("finished", "sum 3.0\n", None)
    assert "sum 3.0" in text


def test_an_exception_comes_with_the_scripts_own_lines(toolbox: Toolbox):
    found, text = ran(toolbox, "print('before')\ndef f():\n    return 1 / 0\nf()\n")
    assert (found.ended, found.raised) == ("raised", "ZeroDivisionError")
    assert found.output.startswith("before\n")
    assert "line 3, in f" in found.output
    # Nothing of ours is in the traceback.
    assert "run_module" not in found.output
    assert "ZeroDivisionError" in text
    assert ran(toolbox, "x = (\n")[0].raised == "SyntaxError"


@pytest.mark.parametrize(
    ("ending", "ended", "said"),
    [
        ("import sys; sys.exit()", "finished", "ended after"),
        ("import sys; sys.exit('no')", "raised", "SystemExit"),
        ("import sys; sys.exit(3)", "raised", "ended with SystemExit(3)"),
        ("import os; os._exit(3)", "exited", "ended its own process with exit code 3"),
        ("import ctypes; ctypes.string_at(0)", "crashed", "died of a segmentation fault"),
        ("import os; os.abort()", "crashed", "died of abort()"),
        ("while True: pass", "timeout", "1 s, its limit"),
        (
            SPOIL,
            "exited",
            "ended its own process",
        ),
    ],
)
def test_every_end_is_named_and_what_was_printed_before_is_kept(toolbox: Toolbox, ending: str, ended: str, said: str):
    found, text = ran(toolbox, f"print('before')\n{ending}\n", seconds=1)
    assert found.ended == ended
    assert found.output.startswith("before\n")
    assert said in text


def test_a_script_is_held_as_a_candidate_is(toolbox: Toolbox, secret_folder: Path, monkeypatch: pytest.MonkeyPatch):
    script = f"""
import os, pathlib, socket, subprocess
print("environment", sorted(name for name in os.environ if "KEY" in name or "TOKEN" in name))
print("runs", list(pathlib.Path({str(secret_folder)!r}).glob("*")))
for what in (lambda: subprocess.run(["true"]), lambda: socket.create_connection(("127.0.0.1", 9)),
             lambda: open("/etc/hostname", "w")):
    try:
        what()
        print("allowed")
    except OSError as error:
        print("refused")
"""
    found, text = ran(toolbox, script)
    assert found.output == "environment []\nruns []\nrefused\nrefused\nrefused\n"
    assert len(found.refused) >= 3
    assert "The sandbox refused" in text


def test_a_flood_of_output_is_cut_in_the_middle(toolbox: Toolbox):
    found, _ = ran(toolbox, "print('first')\nfor i in range(200_000): print(i)\nprint('last')\n")
    assert found.output.startswith("first\n0\n1\n")
    assert found.output.endswith("last\n")
    assert len(found.output) < MOST_OUTPUT + 200
    printed = len("first\nlast\n" + "".join(f"{i}\n" for i in range(200_000)))
    said = re.search(r"^\[(\d+) characters left out\]$", found.output, re.MULTILINE)
    assert said is not None
    assert abs(printed - MOST_OUTPUT - int(said[1])) < 100


def test_what_a_terminal_would_obey_does_not_reach_the_model(toolbox: Toolbox):
    _, text = ran(toolbox, r"print('\x1b[31mred\x1b[0m 1%\r100%\n```\nfence\x00')")
    assert "red 1%" not in text
    assert "\n````\n100%\n```\nfence\ufffd\n````" in text


def test_what_a_script_builds_runs_with_it(toolbox: Toolbox):
    found, text = ran(toolbox, BUILDS.format(before="", result="x + 1"))
    assert found.output == "from C++ with 20\nthen Python with 21\n"
    assert found.build is not None and found.build.ok
    assert "Built in" in text


def test_a_script_that_does_not_build_is_told_why(toolbox: Toolbox):
    found, text = ran(toolbox, BUILDS.format(before="", result="undeclared_name"))
    assert (found.ended, found.output) == ("not_built", "")
    assert "undeclared_name" in text
    assert "did not run" in text


def test_a_build_that_was_not_foreseen_is_explained(toolbox: Toolbox):
    # In the first run every kernel gives back its input, so this condition is not met there.
    script = BUILDS.format(before="", result="x + 1") + BUILDS.replace("experiment_ext", "second_ext").format(
        before="if ext.f(1) is not None and ext.f(1) != 2: raise SystemExit", result="x + 5"
    )
    found, text = ran(toolbox, script)
    assert found.unbuilt
    assert "from C++ with 20\nthen Python with 21\n" in found.output
    assert "put it at the top of the script" in text


def test_an_empty_script_is_refused(toolbox: Toolbox):
    record = toolbox.call("run_experiment", json.dumps({"source": " \n"}))
    assert isinstance(record, Refusal)
    assert record.code == "empty_source"
    assert "script" in render(record.kind, report=record)
