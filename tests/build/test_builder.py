"""Whole builds for real: a candidate's text in, a library that loads out, or the right verdict."""

from __future__ import annotations

import multiprocessing
import threading
from pathlib import Path

import pytest
from build_sources import light, load

from tools.build import Builder
from tools.types import Verdict

TORCH = '''
import torch
from torch.utils.cpp_extension import load_inline

relu = load_inline(
    name="my-relu",
    cpp_sources="""
#include <torch/extension.h>
torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  const float* a = x.data_ptr<float>();
  float* b = y.data_ptr<float>();
  for (int64_t i = 0; i < x.numel(); ++i) b[i] = a[i] > 0 ? a[i] : 0;
  return y;
}
""",
    functions="relu",
)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return relu.relu(x)
'''


# Positional arguments, a tuple of names, and the name of the first module once more.
SECOND_CALL = """other = load_inline(ext.__name__, [source.replace("+ 1", "+ 2")], None, None, ("f",),
                    no_implicit_headers=True, with_pytorch_error_handling=False, verbose=True)"""


def test_light_build_loads_and_is_cached(build, builder, tmp_path):
    source = light("int f(int x) { return x + 41; }")
    first = build(source)
    assert first.ok, first
    assert load(first).f(1) == 42
    assert not first.cached
    second = build(source)
    assert second.cached and second.modules[0].cached
    assert second.modules[0].library == first.modules[0].library
    assert (tmp_path / "build.log").read_text()
    # Another process would find it too: nothing of it is in memory.
    again = Builder(nursery=builder.nursery, device="cpu", level=builder.level, cache_dir=builder.cache.folder)
    assert again.build(source, init_args=[], log_dir=tmp_path).cached


@pytest.mark.slow
def test_torch_build_loads(build):
    import torch

    result = build(TORCH, stock=True)
    assert result.ok, result
    assert [m.name for m in result.modules] == ["my_relu"]
    assert result.modules[0].route == "stock"
    module = load(result)
    assert torch.equal(module.relu(torch.tensor([-1.0, 2.0])), torch.tensor([0.0, 2.0]))


BROKEN = "int g(int x) { return 1; }\nint f(int x) {\n  return undeclared_thing + g(1, 2);\n}"


def test_errors_point_into_the_model_s_own_text(build):
    result = build(light(BROKEN), stock=True)
    assert result.verdict is Verdict.COMPILE_ERROR
    first = result.diagnostics[0]
    assert (first.file, first.line, first.code) == ("cpp_sources", 5, "undeclared_name")
    assert first.source_line == "return undeclared_thing + g(1, 2);"
    assert [d.code for d in result.diagnostics] == ["undeclared_name", "wrong_arguments"]


def test_what_is_certainly_wrong_needs_no_stock_build(build, tmp_path):
    result = build(light(BROKEN))
    assert result.verdict is Verdict.COMPILE_ERROR
    assert [d.code for d in result.diagnostics] == ["undeclared_name"]
    assert (tmp_path / "build.log").read_text().count("-c ./main.cpp") == 1


def test_error_in_a_header_is_put_where_the_model_led_to_it(build):
    code = "#include <memory>\nstruct N { N(int); };\nint f(int x) {\n  std::make_unique<N>();\n  return x; }"
    result = build(light(code))
    assert result.verdict is Verdict.COMPILE_ERROR
    assert (result.diagnostics[0].file, result.diagnostics[0].line) == ("cpp_sources", 6)


def test_function_that_is_declared_and_never_defined(build):
    result = build(light("int missing_one(int x);\nint f(int x) { return missing_one(x); }"))
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.diagnostics[0].code == "undefined_symbol"
    assert "missing_one(int) is declared and used" in result.diagnostics[0].message


def test_library_that_does_not_exist(build):
    result = build(light("int f(int x) { return x; }", "extra_ldflags=['-lno_such_library_here']"))
    assert result.verdict is Verdict.COMPILE_ERROR
    assert result.diagnostics[0].code == "library_not_found"


def test_flags_are_arguments_and_never_reach_a_shell(build, tmp_path):
    for flag in ("`touch /tmp/ran`", "$(touch /tmp/ran)", "-fplugin=/tmp/x.so", "-wrapper touch,/tmp/ran"):
        result = build(light("int f(int x) { return x; }", f"extra_cflags=[{flag!r}]"))
        assert result.verdict is Verdict.SANDBOX_VIOLATION
        assert result.findings[0].code == "flag_runs_command"
    # A shell would split this or run it; a compiler sees one strange argument.
    result = build(light("int f(int x) { return x; }", "extra_cflags=['-DA=\"1;touch${IFS}ran\"', '-O2;touch ran']"))
    assert result.verdict is Verdict.COMPILE_ERROR
    assert not list(tmp_path.glob("**/ran"))


def test_a_build_that_never_ends_is_killed(build, cache_dir):
    code = (
        "constexpr long spin(long n) { long s = 0; for (long i = 0; i < n; ++i) s += i * s; return s; }\n"
        "int f(int x) { constexpr long v = spin(1L << 62); return v; }"
    )
    flags = "extra_cflags=['-fconstexpr-ops-limit=1000000000000', '-fconstexpr-loop-limit=2000000000']"
    result = build(light(code, flags), timeout=3)
    assert result.verdict is Verdict.TIMEOUT
    assert [f.code for f in result.findings] == ["build_timeout"]
    assert not list((cache_dir / "building").iterdir())
    # It left nothing that would block or answer the next build of the same text.
    assert not build(light(code, flags), timeout=1).cached


def test_several_calls_and_one_name(build):
    source = light("int f(int x) { return x + 1; }")
    second = source.replace("class ModelNew", SECOND_CALL + "\n\nclass ModelNew")
    result = build(second)
    assert result.ok, result
    name = result.modules[0].name
    assert result.modules[1].name == f"{name}_2"
    assert [load(result, i).f(1) for i in (0, 1)] == [2, 3]
    assert len({m.call for m in result.modules}) == 2
    assert f"a second module named {name} is built as {name}_2" in result.added


def test_same_source_in_many_threads_builds_once_or_alike(build):
    source = light("int f(int x) { return x * 7; }")
    results = []
    threads = [threading.Thread(target=lambda: results.append(build(source))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [r.ok for r in results] == [True] * 4
    assert len({r.modules[0].library for r in results}) == 1
    assert load(results[0]).f(6) == 42


def test_files_written_for_load(build):
    source = """
import torch, os, tempfile
from torch.utils.cpp_extension import load
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "add.h"), "w") as f:
    f.write("int add(int a, int b);")
with open(os.path.join(folder, "add.cpp"), "w") as f:
    f.write('#include "add.h"\\nint add(int a, int b) { return a + b; }')
with open(os.path.join(folder, "bind.cpp"), "w") as f:
    f.write('#include <pybind11/pybind11.h>\\n#include "add.h"\\n')
    f.write('PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("add", &add); }')
ext = load(name="files", sources=[os.path.join(folder, n) for n in ("add.cpp", "bind.cpp")])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.add(x, x)
"""
    result = build(source)
    assert result.ok, result
    assert load(result).add(2, 3) == 5
    assert build(source).cached, "a temporary folder of another name is the same build"


@pytest.mark.nvcc
def test_cuda_without_a_cuda_torch_compiles_and_reports(cuda_builder, tmp_path):
    source = '''
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline("light_cuda", ["#include <pybind11/pybind11.h>"], [r"""
#include <cuda_runtime.h>
__global__ void __launch_bounds__(128) twice(const float4* x, float4* y) {
  __shared__ float4 tile[128];
  tile[threadIdx.x] = x[threadIdx.x];
  __syncthreads();
  y[threadIdx.x] = tile[127 - threadIdx.x];
}
int launch(long x, long y) { twice<<<1, 128>>>((const float4*)x, (float4*)y); return 0; }
"""], functions=["launch"], no_implicit_headers=True, with_pytorch_error_handling=False,
extra_cuda_cflags=["-arch=sm_70", "--use_fast_math"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.launch(x.data_ptr(), x.data_ptr())
'''
    result = cuda_builder.build(source, init_args=[], log_dir=tmp_path)
    assert result.ok, result
    kernel = result.modules[0].kernels[0]
    assert kernel.name == "twice(float4 const*, float4*)"
    assert (kernel.arch, kernel.static_shared, kernel.block) == ("sm_90a", 2048, 128)
    assert kernel.registers > 0 and kernel.theoretical_occupancy == 1.0
    assert kernel.dynamic_shared_limit == 227 * 1024 - 2048
    assert "extra_cuda_cflags: -arch=sm_70 was left out, the build targets sm_90a" in result.added
    assert any("--use_fast_math is kept" in line for line in result.added)
    if not cuda_builder.toolchain.links_cuda and result.modules[0].route == "stock":
        assert result.modules[0].library == ""


def _build_elsewhere(cache_dir: str, log_dir: str, source: str) -> bool:
    """In another process, with a nursery of its own: what a second run on this machine does."""
    from tools.nursery import Nursery
    from tools.sandbox import probe_level

    level = probe_level()
    with Nursery.start(level) as nursery:
        other = Builder(nursery=nursery, device="cpu", level=level, cache_dir=Path(cache_dir))
        return other.build(source, init_args=[], log_dir=Path(log_dir)).ok


def test_two_processes_share_a_cache(builder, cache_dir, tmp_path):
    assert builder.ready()  # what both need besides is there already
    source = light("int f(int x) { return x - 1; }")
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        assert pool.starmap(_build_elsewhere, [(str(cache_dir), str(tmp_path), source)] * 2) == [True, True]
