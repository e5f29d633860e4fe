"""`check_memory` over a real evaluator on the CPU: real builds with gcc's sanitizers, findings on real lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from problems import ProblemSpec
from prompts import render
from tools.build.toolchain import find_toolchain
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.memcheck.records import MemoryCheck, MemoryFinding
from tools.memcheck.runtimes import address_runtimes
from tools.reports import KernelReport, MemoryReport, kernels_of
from tools.toolbox import Toolbox

pytestmark = pytest.mark.skipif(
    not address_runtimes(find_toolchain(cuda=False).cxx), reason="needs gcc's AddressSanitizer"
)

PROBLEM = """
import torch
import torch.nn as nn

rows = 64
columns = 96
SMALL = {"rows": 8, "columns": 40}

class Model(nn.Module):
    def forward(self, x):
        return 2.0 * x + 1.0

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""

SOURCE = '''
import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

cpp_source = r"""
#include <torch/extension.h>
#include <cstdlib>

torch::Tensor f(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const int64_t n = COUNT;
    const float* in = x.data_ptr<float>();
    float* out = y.data_ptr<float>();
    for (int64_t i = 0; i < n; i++) out[i] = 2.0f * in[i] + 1.0f;
    EXTRA
    return y;
}
"""
ext = load_inline(name="twice_ext", cpp_sources=cpp_source, functions=["f"], extra_cflags=["-O3"])

class ModelNew(nn.Module):
    def forward(self, x):
        BODY
'''
LOOP_LINE, EXTRA_LINE = 10, 11


def source(count: str = "x.numel()", extra: str = "", body: str = "return ext.f(x)") -> str:
    return SOURCE.replace("COUNT", count).replace("EXTRA", extra).replace("BODY", body)


@pytest.fixture(scope="module")
def evaluator(request: pytest.FixtureRequest) -> Iterator[Evaluator]:
    cache: pytest.Cache = request.config.cache  # pyright: ignore[reportAssignmentType]
    spec = ProblemSpec(name="twice", source=PROBLEM, origin="path", sizes=("full", "small"))
    with Evaluator(spec, EvaluatorSettings(device="cpu", cache_dir=cache.mkdir("agent-builds"))) as evaluator:
        yield evaluator


@pytest.fixture
def toolbox(evaluator: Evaluator, tmp_path: Path) -> Toolbox:
    return Toolbox(evaluator, tmp_path / "kernels")


def checked(toolbox: Toolbox, text: str) -> tuple[MemoryCheck, str]:
    built = toolbox.call("compile_kernel", json.dumps({"source": text}))
    assert isinstance(built, KernelReport)
    assert built.build is not None and built.build.ok, built.build
    record = toolbox.call("check_memory", json.dumps({"id": built.kernel}))
    assert isinstance(record, MemoryReport), record
    assert kernels_of(record) == [built.kernel]
    assert MemoryReport.model_validate_json(record.model_dump_json()) == record
    assert record.memory.seconds < record.memory.most_seconds
    return record.memory, render(record.kind, report=record)


def only(memory: MemoryCheck) -> MemoryFinding:
    assert len(memory.findings) == 1, memory
    return memory.findings[0]


def test_an_honest_kernel_is_clean(toolbox: Toolbox):
    memory, text = checked(toolbox, source())
    assert memory.findings == []
    assert [(r.check, r.ended) for r in memory.runs] == [("host_sanitizers", "clean"), ("poison", "clean")]
    assert (memory.size, memory.fits_small, memory.trouble) == ("small", True, None)
    assert memory.evidence is not None and memory.evidence.device == "cpu"
    assert "nothing was found" in text
    assert "no verdict" in text


def test_an_overrun_is_found_on_its_line(toolbox: Toolbox):
    memory, text = checked(toolbox, source("x.numel() + 1"))
    kinds = {f.kind: f for f in memory.findings}
    assert set(kinds) == {"out_of_bounds_read", "out_of_bounds_write"}
    for finding in memory.findings:
        assert (finding.check, finding.file, finding.line) == ("host_sanitizers", "cpp_sources", LOOP_LINE)
        assert finding.source_line == "for (int64_t i = 0; i < n; i++) out[i] = 2.0f * in[i] + 1.0f;"
    assert f"cpp_sources:{LOOP_LINE}" in text
    assert "writes outside of a block" in text


@pytest.mark.parametrize(
    ("extra", "kind"),
    [
        ("float* volatile t = new float[9]; t[1] = 1; delete[] t; out[0] += 0 * t[1];", "use_after_free"),
        ("int k = (int)n; k = k * 30000000; out[0] += 0 * (float)k;", "integer_overflow"),
        ("static int a[4] = {1, 2, 3, 4}; volatile int v = a[n % 7 + 4];", "index_out_of_bounds"),
        ("out[0] += 0 * *(volatile float*)(16);", "invalid_address"),
        ("int s = (int)n; out[0] += 0 * (1 << s);", "bad_shift"),
    ],
)
def test_errors_of_each_kind_are_found_on_their_line(toolbox: Toolbox, extra: str, kind: str):
    memory, text = checked(toolbox, source(extra=extra))
    finding = next(f for f in memory.findings if f.kind == kind)
    assert (finding.file, finding.line) == ("cpp_sources", EXTRA_LINE)
    assert f"cpp_sources:{EXTRA_LINE}" in text


def test_memory_that_was_never_written_is_found_by_the_poison(toolbox: Toolbox):
    memory, text = checked(
        toolbox, source(extra="auto t = torch::empty({900}); out[3] += 0.5f * t.data_ptr<float>()[5];")
    )
    finding = only(memory)
    assert (finding.check, finding.kind) == ("poison", "uninitialised_memory")
    assert "1 of 320 output elements" in finding.detail
    assert "allocated and never written" in text


@pytest.mark.parametrize(
    "extra",
    [
        "float* t = (float*)malloc(9000); out[3] += 0.5f * t[700]; free(t);",
        "float* volatile t = new float[400000]; out[3] += 0.5f * t[39999]; delete[] t;",
    ],
    ids=["malloc", "new"],
)
def test_so_is_what_malloc_and_new_gave(toolbox: Toolbox, extra: str):
    memory, text = checked(toolbox, source(extra=extra))
    finding = only(memory)
    assert (finding.check, finding.kind) == ("poison", "uninitialised_memory")
    assert "1 of 320 output elements" in finding.detail
    assert "not looked for on the CPU: variables on the stack" in text


def test_output_that_was_never_written_is_found_by_the_poison(toolbox: Toolbox):
    memory, text = checked(toolbox, source("x.numel() - 3"))
    finding = only(memory)
    assert (finding.kind, finding.count) == ("unwritten_output", 3)
    assert "never written" in text


def test_an_exception_of_c_plus_plus_passes_through_the_sanitizers(toolbox: Toolbox):
    memory, _ = checked(toolbox, source(extra='try { throw std::runtime_error("x"); } catch (...) { out[0] += 0; }'))
    assert memory.findings == []
    assert [r.ended for r in memory.runs] == ["clean", "clean"]


def test_a_kernel_for_fixed_shapes_is_not_accused_on_the_small_size(toolbox: Toolbox):
    memory, text = checked(toolbox, source("64 * 96"))
    assert (memory.size, memory.fits_small) == ("full", False)
    assert memory.findings == []
    assert "fixed shapes" in text
    assert "full size" in text


def test_a_candidate_that_raises_is_told_as_such(toolbox: Toolbox):
    memory, text = checked(toolbox, source(body="return ext.f(x) + undefined_name"))
    assert memory.trouble is not None
    assert memory.trouble.type == "NameError"
    assert memory.findings == []
    assert [r.ended for r in memory.runs] == ["failed", "failed"]
    assert "undefined_name" in text
    assert "no check came to its end" in text


def test_the_checked_process_is_held_and_sees_no_key(toolbox: Toolbox, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    body = f"""import os, socket; y = ext.f(x)
        assert 'OPENAI_API_KEY' not in os.environ
        try:
            open({str(tmp_path / "written")!r}, "w").write("x")
        except OSError:
            pass
        for way in (socket.AF_INET, socket.AF_UNIX):
            try:
                socket.socket(way)
            except OSError:
                continue
            raise SystemError("a socket")
        return y"""
    memory, _ = checked(toolbox, source(body=body))
    host = next(r for r in memory.runs if r.check == "host_sanitizers")
    assert (host.ended, host.said) == ("clean", "")
    assert not (tmp_path / "written").exists()
