"""From the command to the record, with a stand-in for Nsight Compute, which itself needs a GPU.

It starts the program that it is given, as the real one does, and prints recorded reports. Everything round it is real:
the sandbox, the program, the candidate, the files between them.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tools.evaluator import Evaluator, EvaluatorSettings
from tools.probe.host import Host
from tools.profiling import ncu
from tools.profiling.metrics import BESIDE_SECTIONS
from tools.sandbox import probe_level
from tools.types import BuildResult, SandboxLevel

pytestmark = pytest.mark.skipif(probe_level() is not SandboxLevel.NAMESPACES, reason="needs namespaces")

RECORDED = Path(__file__).with_name("recorded")
STAND_IN = """#!/bin/sh
here=$(dirname "$0")
case "$1" in
--import) exec cat "$here/ncu_$5.csv" ;;
esac
report= metrics=
while [ "$1" != PYTHON ]; do
    case "$1" in
    --export) report=$2 ;;
    --metrics) metrics=$2 ;;
    esac
    shift
done
case "$metrics" in
*UNKNOWN*) echo "==ERROR== Failed to find metric UNKNOWN"; exit 1 ;;
esac
BEFORE
echo "==PROF== Connected to process $$"
"$@" || exit 1
AFTER
"""
PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return x + 1

def get_inputs():
    return [torch.randn(8, 8)]

def get_init_inputs():
    return []
"""
# `marked` synchronises the device, which there is none of here: the candidate says so itself, as the real thing would.
CANDIDATE = """
import torch
import torch.nn as nn
torch.cuda.synchronize = lambda *_: None
torch.cuda.profiler.start = torch.cuda.profiler.stop = lambda: None

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
"""


@pytest.fixture(scope="module")
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    from problems import ProblemSpec

    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", cache_dir=cache.mkdir("agent-builds"))
    with Evaluator(ProblemSpec(name="one", source=PROBLEM, origin="path"), settings) as evaluator:
        yield evaluator._host()


def stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, before: str = "", after: str = 'touch "$report"'
) -> None:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "ncu").write_text(
        STAND_IN.replace("PYTHON", sys.executable).replace("BEFORE", before).replace("AFTER", after)
    )
    (folder / "ncu").chmod(0o755)
    for page in ("raw", "details"):
        (folder / f"ncu_{page}.csv").write_text((RECORDED / f"ncu_{page}.csv").read_text())
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")


def counted(host: Host, tmp_path: Path, body: str = "return x + 1"):
    args = host.arguments(CANDIDATE.replace("BODY", body), BuildResult(ok=True, source_key="k", seconds=0.0))
    return ncu.count(host, args, ["tile_transpose<32>(float const*, float*, int)"], tmp_path / "out")


def test_a_report_becomes_counters(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch)
    found, unavailable, trouble = counted(host, tmp_path)
    assert (unavailable, trouble) == (None, None)
    assert [k.metrics["duration_us"] for k in found] == [pytest.approx(57.088), pytest.approx(9.216)]
    assert found[0].rules


def test_metrics_that_a_version_lacks_are_left_out(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch)
    monkeypatch.setattr(ncu, "BESIDE_SECTIONS", ("UNKNOWN", *BESIDE_SECTIONS))
    found, unavailable, _ = counted(host, tmp_path)
    assert unavailable is None
    assert len(found) == 2


def test_a_refusal_of_the_driver_is_told(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch, after='echo "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission"')
    found, unavailable, _ = counted(host, tmp_path)
    assert found == []
    assert unavailable is not None
    assert unavailable.code == "no_permission"
    assert unavailable.said.startswith("ERR_NVGPUCTRPERM")


def test_a_report_without_launches_is_told(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch)
    (tmp_path / "bin" / "ncu_raw.csv").write_text("==WARNING== nothing\n")
    (tmp_path / "bin" / "ncu_details.csv").write_text("")
    assert counted(host, tmp_path)[1].code == "no_report"  # pyright: ignore[reportOptionalMemberAccess]


def test_a_candidate_that_fails_under_it_is_told(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch)
    found, unavailable, trouble = counted(host, tmp_path, "raise ValueError('no')")
    assert found == []
    assert trouble is not None and trouble.type == "ValueError"
    assert unavailable is not None


def test_it_is_stopped_at_its_limit(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch, before="sleep 1000")
    monkeypatch.setattr(ncu, "NCU_SECONDS", 1.0)
    assert counted(host, tmp_path)[1].code == "timeout"  # pyright: ignore[reportOptionalMemberAccess]


def test_an_old_report_is_not_taken_for_a_new_one(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    stand_in(tmp_path, monkeypatch, after="true")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "profile.ncu-rep").write_text("old")
    found, unavailable, _ = counted(host, tmp_path)
    assert found == []
    assert unavailable is not None and unavailable.code == "failed"


def test_without_it_nothing_is_started(host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ncu, "find_ncu", lambda _toolkit: None)
    assert counted(host, tmp_path)[1].code == "not_installed"  # pyright: ignore[reportOptionalMemberAccess]
    assert not (tmp_path / "out").exists()
