"""`profile_kernel` over a real evaluator on the CPU: real builds, real samples."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import ProblemSpec
from prompts import render
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.profiling import profiler
from tools.profiling.records import Profile
from tools.reports import KernelReport, ProfileReport, kernels_of
from tools.toolbox import Refusal, Toolbox

PROBLEM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return torch.exp(torch.sin(x))

def get_inputs():
    return [torch.randn(512, 1024)]

def get_init_inputs():
    return []
"""

SOURCE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <torch/extension.h>
#include <ATen/Parallel.h>
#include <cmath>

namespace {
__attribute__((noinline)) void work_on_rows(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; i++) { float v = x[i]; for (int k = 0; k < 40; k++) v = v * v - 0.7f; y[i] = v; }
}
}

torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    at::parallel_for(0, x.numel(), 4096, [&](int64_t a, int64_t b) { work_on_rows(in + a, out + a, b - a); });
    return y;
}
"""
ext = load_inline(name="rows_ext", cpp_sources=cpp_source, functions=["f"], extra_cflags=["-O2", FLAGS])

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
'''


def source(body: str = "return ext.f(x)", flags: str = '"-fopenmp"') -> str:
    return SOURCE.replace("BODY", body).replace("FLAGS", flags)


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    settings = EvaluatorSettings(device="cpu", cache_dir=cache.mkdir("agent-builds"))
    with Evaluator(ProblemSpec(name="rows", source=PROBLEM, origin="path"), settings) as evaluator:
        yield evaluator


@pytest.fixture
def toolbox(evaluator: Evaluator, tmp_path: Path) -> Toolbox:
    return Toolbox(evaluator, tmp_path / "kernels")


def profiled(toolbox: Toolbox, text: str) -> tuple[Profile, str]:
    built = toolbox.call("compile_kernel", json.dumps({"source": text}))
    assert isinstance(built, KernelReport)
    record = toolbox.call("profile_kernel", json.dumps({"id": built.kernel}))
    assert isinstance(record, ProfileReport), record
    assert kernels_of(record) == [built.kernel]
    assert ProfileReport.model_validate_json(record.model_dump_json()) == record
    return record.profile, render(record.kind, report=record)


def test_a_kernel_that_calls_the_maths_library_is_profiled_as_its_own(toolbox: Toolbox):
    profile, text = profiled(toolbox, source().replace("v = v * v - 0.7f", "v = std::pow(v * v, 0.71f)"))
    assert profile.trouble is None
    maths = [s for s in profile.symbols if s.file.startswith("libm.so")]
    assert maths
    assert all(s.whose == "own" for s in maths)
    assert profile.limit is not None
    assert profile.limit.code in ("hot_function", "idle_cores")
    assert "libm.so" in text


def test_the_time_of_a_kernel_is_found_in_its_functions(toolbox: Toolbox):
    profile, text = profiled(toolbox, source())
    assert profile.trouble is None
    assert profile.samples is not None and profile.samples > 50
    top = profile.symbols[0]
    assert top.whose == "own"
    own = sum(s.share for s in profile.symbols if s.whose == "own")
    assert own > 0.5
    # The loop is in a function that the library does not export.
    assert any(s.symbol and "work_on_rows" in s.symbol for s in profile.symbols)
    line = max(profile.lines, key=lambda one: one.share)
    assert line.file == "cpp_sources"
    assert line.source_line is not None and "v = v * v - 0.7f" in line.source_line
    assert line.line == 8
    assert profile.call_us is not None and profile.call_us > 0
    assert profile.evidence is not None and profile.evidence.device == "cpu"
    assert profile.seconds < profile.most_seconds
    assert "work_on_rows" in text
    assert "(yours)" in text
    assert "| cpp_sources:8 |" in text
    assert "What limits it" in text


def test_a_loop_on_one_core_is_told_from_one_on_all(toolbox: Toolbox):
    serial, text = profiled(toolbox, source(flags='"-O3"'))
    assert serial.cores_used is not None
    assert serial.cores_used < 1.1
    parallel, _ = profiled(toolbox, source())
    assert parallel.cores is not None and parallel.cores_used is not None
    if parallel.cores > 1:
        assert parallel.cores_used > 1.3
        assert serial.limit is not None and serial.limit.code == "idle_cores"
        assert "-fopenmp" in text


def test_time_in_a_library_is_named_as_such(toolbox: Toolbox):
    profile, text = profiled(toolbox, source("[torch.mm(x, x.t()) for _ in range(16)]; return ext.f(x)"))
    assert profile.limit is not None and profile.limit.code == "library_time"
    assert "(library)" in text
    assert "in library code, not in your kernels" in text


@pytest.mark.parametrize(
    ("work", "code", "said"),
    [
        ("usleep(80000);", "waits", "the thread that calls sleeps"),
        (
            "static std::vector<char> b(1 << 26); for (int k = 0; k < 16; k++) memset(b.data(), k, b.size());",
            "c_library",
            "memset",
        ),
    ],
    ids=["sleeps", "fills"],
)
def test_what_is_no_computing_is_told_as_such(toolbox: Toolbox, work: str, code: str, said: str):
    text = source().replace(
        "#include <cmath>", "#include <cmath>\n#include <cstring>\n#include <unistd.h>\n#include <vector>"
    )
    # Of the kernel's own work hardly any is left beside it, however fast a machine fills memory.
    text = text.replace("k < 40", "k < 1").replace("auto y =", f"{work} auto y =")
    profile, told = profiled(toolbox, text)
    assert profile.limit is not None
    assert profile.limit.code == code, profile
    assert said in told


def test_a_candidate_that_raises_is_no_failure_of_ours(toolbox: Toolbox):
    profile, text = profiled(toolbox, source("return ext.f(x) + undefined_name"))
    assert profile.trouble is not None
    assert (profile.trouble.ended, profile.trouble.type) == ("raised", "NameError")
    assert profile.limit is None
    assert "undefined_name" in text
    assert "could not be profiled" in text


@pytest.mark.parametrize(
    ("body", "ended"), [("import os; os._exit(0)", "exited"), ("import ctypes; ctypes.string_at(0)", "crashed")]
)
def test_a_candidate_that_ends_its_process_ends_nothing_else(toolbox: Toolbox, body: str, ended: str):
    profile, _ = profiled(toolbox, source(body))
    assert profile.trouble is not None
    assert profile.trouble.ended == ended


def test_a_candidate_that_hangs_is_stopped(toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(profiler, "LOOK_SECONDS", 1.0)
    profile, text = profiled(toolbox, source("while True: pass"))
    assert profile.trouble is not None
    assert profile.trouble.ended == "timeout"
    assert "time limit" in text


def test_a_reply_that_is_not_ours_is_not_believed(toolbox: Toolbox):
    body = """import os, struct
        if os.path.exists("/proc/self/fd"):
            word = b'{"reply": {"rows": [], "samples": 1}}'
            for fd in range(3, 30):
                if os.path.exists(f"/proc/self/fd/{fd}") and "socket" in os.readlink(f"/proc/self/fd/{fd}"):
                    os.write(fd, struct.pack("!I", len(word)) + word)
        return ext.f(x)"""
    profile, _ = profiled(toolbox, source(body))
    assert profile.trouble is not None
    assert profile.trouble.ended == "malformed"
    assert (profile.symbols, profile.limit) == ([], None)


def test_the_profiled_process_is_held_as_a_candidate_is(toolbox: Toolbox, tmp_path: Path):
    target = tmp_path / "written"
    body = f"import pathlib, subprocess; pathlib.Path({str(target)!r}).write_text('x'); return ext.f(x)"
    profile, _ = profiled(toolbox, source(body))
    assert not target.exists()
    profile, _ = profiled(toolbox, source("import subprocess; subprocess.run(['true']); return ext.f(x)"))
    assert profile.trouble is not None
    assert profile.trouble.type == "PermissionError"
    assert any("process attempt" in words or "program attempt" in words for words in profile.trouble.refused)


def test_a_candidate_that_does_not_build_is_not_profiled(toolbox: Toolbox):
    built = toolbox.call("compile_kernel", json.dumps({"source": source().replace("empty_like", "no_such_thing")}))
    assert isinstance(built, KernelReport)
    record = toolbox.call("profile_kernel", json.dumps({"id": built.kernel}))
    assert isinstance(record, KernelReport)
    assert record.build is not None and not record.build.ok


def test_an_unknown_id_is_refused(toolbox: Toolbox):
    record = toolbox.call("profile_kernel", json.dumps({"id": "k9"}))
    assert isinstance(record, Refusal)
    assert record.code == "unknown_id"
