"""Builds with more flags than a candidate asks for, beside the plain ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tools.build import Builder
from tools.build.instrument import HOST_SANITIZERS, LINE_INFO, Instrument
from tools.types import BuildResult

CPP = '''
from torch.utils.cpp_extension import load_inline
import torch.nn as nn
source = r"""
#include <pybind11/pybind11.h>
#ifdef MARKED
int f(int x) { return x + 2; }
#else
int f(int x) { return x + 1; }
#endif
"""
ext = load_inline(name="marked_ext", cpp_sources=source, functions=["f"], no_implicit_headers=True,
                  with_pytorch_error_handling=False)
class ModelNew(nn.Module):
    def forward(self, x): return ext.f(x)
'''
CUDA = '''
from torch.utils.cpp_extension import load_inline
import torch.nn as nn
source = r"""
__global__ void k(float* x) { x[threadIdx.x] = 1.f; }
void f(long p) { k<<<1, 32>>>((float*)p); }
"""
ext = load_inline(name="lined_ext", cpp_sources="void f(long p);", cuda_sources=source, functions=["f"])
class ModelNew(nn.Module):
    def forward(self, x): return ext.f(0)
'''


def test_an_instrumented_build_has_a_place_of_its_own(build: Callable[..., BuildResult]):
    plain = build(CPP)
    marked = build(CPP, instrument=Instrument(cflags=["-DMARKED"]))
    assert plain.ok and marked.ok, (plain.diagnostics, marked.diagnostics)
    assert plain.modules[0].key != marked.modules[0].key
    assert plain.modules[0].library != marked.modules[0].library
    # A worker finds either by the same call.
    assert plain.modules[0].call == marked.modules[0].call
    again = build(CPP, instrument=Instrument(cflags=["-DMARKED"]))
    assert again.cached and again.modules[0].key == marked.modules[0].key


def test_sanitizers_are_linked_into_the_module(build: Callable[..., BuildResult]):
    built = build(CPP, instrument=HOST_SANITIZERS)
    if not built.ok:
        pytest.skip("this compiler comes without sanitizers")
    data = Path(built.modules[0].library).read_bytes()
    assert b"__asan_init" in data
    assert b"libasan" in data


@pytest.mark.nvcc
def test_line_information_changes_no_kernel(cuda_builder: Builder, tmp_path: Path):
    plain = cuda_builder.build(CUDA, init_args=[], log_dir=tmp_path / "plain")
    lined = cuda_builder.build(CUDA, init_args=[], log_dir=tmp_path / "lined", instrument=LINE_INFO)
    assert plain.ok and lined.ok, (plain.diagnostics, lined.diagnostics)
    assert plain.modules[0].key != lined.modules[0].key
    assert "-lineinfo" in (tmp_path / "lined" / "build.log").read_text()
    assert "-lineinfo" not in (tmp_path / "plain" / "build.log").read_text()
    assert plain.modules[0].kernels[0].registers == lined.modules[0].kernels[0].registers
