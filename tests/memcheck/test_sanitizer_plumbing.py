"""From the command to the findings, with a stand-in for compute-sanitizer, which itself needs a GPU.

It starts the program that it is given, as the real one does, and prints recorded reports. The sandbox, the program, the
candidate and the files between them are real.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from memcheck_builds import KERNELS, RECORDED, SOURCE, build_of, module

from problems import ProblemSpec
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.memcheck import checker
from tools.memcheck.checker import _on_cuda
from tools.probe.host import Host
from tools.sandbox import probe_level
from tools.types import BuildResult, KernelResources, SandboxLevel

pytestmark = pytest.mark.skipif(probe_level() is not SandboxLevel.NAMESPACES, reason="needs namespaces")

STAND_IN = """#!/bin/sh
here=$(dirname "$0")
while [ "$1" != PYTHON ]; do
    [ "$1" = --tool ] && tool=$2
    shift
done
[ "$PYTORCH_NO_CUDA_MEMORY_CACHING" = 1 ] || exit 9
"$@" || exit 1
cat "$here/$tool.txt"
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
CANDIDATE = """
import torch.nn as nn

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
"""


@pytest.fixture(scope="module")
def host(request: pytest.FixtureRequest) -> Iterator[Host]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", cache_dir=cache.mkdir("agent-builds"))
    with Evaluator(ProblemSpec(name="one", source=PROBLEM, origin="path"), settings) as evaluator:
        yield evaluator._host()


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildResult:
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "compute-sanitizer").write_text(STAND_IN.replace("PYTHON", sys.executable))
    (folder / "compute-sanitizer").chmod(0o755)
    for tool in ("memcheck", "racecheck", "synccheck"):
        (folder / f"{tool}.txt").write_text((RECORDED / f"{tool}.txt").read_text())
    (folder / "initcheck.txt").write_text("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    made = module(tmp_path, "rows", SOURCE)
    kernel = KernelResources(name=KERNELS[0], mangled=KERNELS[1], arch="sm_90a", registers=20)
    return build_of(made.model_copy(update={"kernels": [kernel]}))


def arguments(host: Host, body: str = "return x + 1") -> dict[str, object]:
    return host.arguments(CANDIDATE.replace("BODY", body), BuildResult(ok=True, source_key="k", seconds=0.0))


def test_each_tool_has_its_findings(host: Host, build: BuildResult, tmp_path: Path):
    parts = _on_cuda(host, arguments(host), build, tmp_path / "out")
    assert [(p.run.check, p.run.ended, len(p.findings)) for p in parts] == [
        ("memcheck", "found", 2),
        ("racecheck", "found", 2),
        ("initcheck", "clean", 0),
        ("synccheck", "found", 1),
    ]
    assert {f.file for p in parts for f in p.findings} == {"cuda_sources"}
    assert parts[0].elsewhere == 1


def test_a_candidate_that_raises_under_them_is_told(host: Host, build: BuildResult, tmp_path: Path):
    parts = _on_cuda(host, arguments(host, "raise ValueError('no')"), build, tmp_path / "out")
    clean = next(p for p in parts if p.run.check == "initcheck")
    assert (clean.run.ended, clean.run.said) == ("failed", "ValueError: no")
    assert clean.trouble is not None and clean.trouble.type == "ValueError"


def test_each_is_stopped_at_its_limit(host: Host, build: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checker, "CHECK_SECONDS", 1.0)
    parts = _on_cuda(host, arguments(host, "while True: pass"), build, tmp_path / "out")
    assert {p.run.ended for p in parts} == {"timeout"}


def test_without_it_nothing_is_run(host: Host, build: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(checker, "find_compute_sanitizer", lambda _toolkit: None)
    parts = _on_cuda(host, arguments(host), build, tmp_path / "out")
    assert {(p.run.ended, p.run.why) for p in parts} == {("not_run", "not_installed")}


def test_a_tool_that_never_attached_is_not_clean(host: Host, build: BuildResult, tmp_path: Path):
    (tmp_path / "bin" / "initcheck.txt").write_text("========= Error: No attachable process found.\n")
    parts = _on_cuda(host, arguments(host), build, tmp_path / "out")
    run = next(p.run for p in parts if p.run.check == "initcheck")
    assert (run.ended, run.said) == (
        "failed",
        "it came to no summary; its last words: Error: No attachable process found.",
    )
