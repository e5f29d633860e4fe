"""nvcc's two halves at once: what is printed, the exit status and the object must be those of plain nvcc."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.build import Builder
from tools.build.commands import Commands
from tools.build.fast import side_by_side
from tools.build.fast.side_by_side import read_steps
from tools.build.toolchain import Nvcc
from tools.types import SandboxLevel

BY = [sys.executable, "-I", "-S", side_by_side.__file__]
FLAGS = ["-gencode=arch=compute_90a,code=sm_90a", "-std=c++17", "-Xptxas", "-v"]
# The steps of nvcc 12, shortened: cicc found by PATH, fatbinary with a file that is removed again.
DRY_RUN = """\
#$ TOP=/cuda/bin/..
#$ CICC_PATH=/cuda/nvvm/bin
#$ PATH=/cuda/nvvm/bin:/usr/bin
#$ INCLUDES="-I/cuda/include"
nvcc warning : incompatible redefinition for option 'std', the last value of this option was used
#$ gcc -std=c++17 -E -x c++ "-I/cuda/include" -include "cuda_runtime.h" -m64 "a.cu" -o "/t/5_a.cpp4.ii"
#$ cudafe++ --orig_src_file_name "a.cu" --gen_c_file_name "/t/6_a.cpp" --gen_module_id_file \
--module_id_file_name "/t/4_a.module_id" "/t/5_a.cpp4.ii"
#$ gcc -std=c++17 -D__CUDA_ARCH__=900 -E -x c++ -m64 "a.cu" -o "/t/7_a.cpp1.ii"
#$ "$CICC_PATH/cicc" --module_id_file_name "/t/4_a.module_id" "/t/7_a.cpp1.ii" -o "/t/6_a.ptx"
#$ ptxas -arch=sm_90a -m64 "/t/6_a.ptx" -o "/t/8_a.cubin"
#$ fatbinary -64 "--image3=kind=elf,sm=90a,file=/t/8_a.cubin" --embedded-fatbin="/t/3_a.fatbin.c"
#$ rm /t/3_a.fatbin
#$ gcc -std=c++17 -D__CUDA_ARCH__=900 -c -x c++ -m64 "/t/6_a.cpp" -o "a.o"
"""
SOURCES = {
    "good": "__global__ void k(float* x) { x[threadIdx.x] *= 2; }\nvoid f(float* x) { k<<<1, 32>>>(x); }\n",
    "internal": "static __global__ void k(float* x) { *x = 2; }\nnamespace { __device__ int q; "
    "__global__ void g() { q = 3; } }\nvoid f(float* x) { k<<<1, 32>>>(x); g<<<1, 1>>>(); }\n",
    "warnings_of_all": "#warning seen\nstatic void unused() {}\n__global__ void k(float* x) { int u; *x = 1; }\n"
    "int f() { int w; int* p = &w; return *p + __builtin_expect(0, 0); }\nint g() {}\n",
    "error_of_both": "#warning seen\n__global__ void k(float* x) { int u; *x = y; }\n",
    "error_of_host": "__global__ void k(float* x) { int u; *x = 1; }\n#ifndef __CUDA_ARCH__\n"
    "int f() { return y; }\n#endif\n",
    "error_of_device": "static void unused() {}\n__global__ void k(float* x) {\n#ifdef __CUDA_ARCH__\n"
    "*x = y;\n#endif\n}\n",
    "error_of_device_preprocessor": "#ifdef __CUDA_ARCH__\n#error device\n#endif\n__global__ void k() {}\n",
    "error_of_assembler": '__global__ void k(float* x) { int u; asm("foo.bar %0;" ::"f"(*x)); }\n',
    "error_of_host_compiler": "__global__ void k(float* x) { *x = 1; }\n#ifndef __CUDA_ARCH__\n"
    'int f() { asm("nonsense"); return 1; }\n#endif\n',
    "missing_header": '#include "missing.h"\n',
}


@pytest.fixture(scope="module")
def nvcc(cuda_builder: Builder) -> Nvcc:
    assert cuda_builder.toolchain.nvcc is not None
    return cuda_builder.toolchain.nvcc


@pytest.fixture
def compile_in(nvcc: Nvcc, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    def run(source: str, by: list[str], output: str, *flags: str) -> subprocess.CompletedProcess[str]:
        scratch = tmp_path / "scratch"
        scratch.mkdir(exist_ok=True)
        (tmp_path / "a.cu").write_text(source)
        argv = [*by, nvcc.path, *FLAGS, *flags, "-c", "./a.cu", "-o", output]
        environment = {"PATH": f"{Path(nvcc.path).parent}:/usr/bin:/bin", "LC_ALL": "C", "TMPDIR": str(scratch)}
        done = subprocess.run(argv, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert list(scratch.iterdir()) == []
        return done

    return run


def _constant(text: str) -> str:
    """Without what differs from run to run of plain nvcc, and without the module's id."""
    text = re.sub(r"Compile time = .*", "", text)
    text = re.sub(r"\S*/tmpxft_[0-9a-f]+_[0-9a-f]+-\d+_", "", text)
    return re.sub(r"_ZN\d+_GLOBAL__N__[0-9a-f]{8}_4_a_cu_(?:_Z1fPf|[0-9a-f]{8})", "ID", text)


def test_steps_are_read_as_argument_lists():
    steps = read_steps(DRY_RUN, {"HOME": "/h", "PATH": "/usr/bin"})
    assert steps is not None
    assert steps.environment["PATH"] == "/cuda/nvvm/bin:/usr/bin"
    assert steps.environment["HOME"] == "/h"
    assert steps.messages.startswith("nvcc warning : incompatible")
    assert [argv[0] for argv in steps.host] == ["gcc", "cudafe++"]
    assert "--gen_module_id_file" not in steps.host[1]
    assert [argv[0] for argv in steps.device] == ["gcc", "/cuda/nvvm/bin/cicc", "ptxas", "fatbinary"]
    assert steps.last[-1] == "a.o"
    assert (steps.source, steps.id_file) == ("a.cu", "/t/4_a.module_id")


@pytest.mark.parametrize(
    ("there", "instead"),
    [
        ("#$ ptxas", '#$ ptxas -arch=sm_80 "/t/6_a.ptx" -o "/t/9_a.cubin"\n#$ ptxas'),
        ("#$ ptxas", "#$ nvlink"),
        (" --gen_module_id_file", ""),
        ('"/t/6_a.ptx" -o', '"/t/other.ptx" -o'),
        ("file=/t/8_a.cubin", "file=/t/9_a.cubin"),
        ('-m64 "/t/6_a.cpp"', '-m64 "/t/9_a.cpp"'),
        ("-arch=sm_90a -m64", "-arch=sm_90a `id`"),
        ("-arch=sm_90a -m64", "-arch=sm_90a; id"),
        ("-arch=sm_90a -m64", "-arch=sm_90a $UNKNOWN"),
        ("-arch=sm_90a -m64", r"-arch=sm_90a \"x\""),
        ("-arch=sm_90a -m64", "-arch=sm_90a 'x y'"),
        ("-arch=sm_90a -m64", '-arch=sm_90a "'),
        ("#$ gcc -std=c++17 -D__CUDA_ARCH__=900 -c", "#$ clang -c"),
        (DRY_RUN, ""),
        (DRY_RUN, "nvcc fatal   : Unknown option '--dryrun'\n"),
    ],
)
def test_other_steps_are_left_to_nvcc(there: str, instead: str):
    assert there in DRY_RUN
    assert read_steps(DRY_RUN.replace(there, instead), {}) is None


@pytest.mark.nvcc
@pytest.mark.parametrize("name", SOURCES)
def test_messages_and_status_are_those_of_plain_nvcc(
    name: str, compile_in: Callable[..., subprocess.CompletedProcess[str]]
):
    plain = compile_in(SOURCES[name], [], "plain.o")
    ours = compile_in(SOURCES[name], BY, "ours.o")
    assert ours.returncode == plain.returncode
    assert (plain.returncode != 0) == ("error" in name or "missing" in name)
    assert _constant(ours.stderr) == _constant(plain.stderr)
    assert _constant(ours.stdout) == _constant(plain.stdout)


@pytest.mark.nvcc
@pytest.mark.parametrize(
    "flags",
    [
        ("-lineinfo", "-O3", "--use_fast_math", "--expt-extended-lambda", "-DX=1"),
        ("-std=c++20",),
        ("-maxrregcount=32", "-Xcompiler", "-Wall,-Wextra"),
        ("-gencode=arch=compute_80,code=sm_80",),
        ("-rdc=true",),
        ("-dlto",),
        ('-DTEXT="a b"',),
        ("--nonsense",),
    ],
)
def test_flags_change_nothing_of_that(
    flags: tuple[str, ...], compile_in: Callable[..., subprocess.CompletedProcess[str]]
):
    plain = compile_in(SOURCES["warnings_of_all"], [], "plain.o", *flags)
    ours = compile_in(SOURCES["warnings_of_all"], BY, "ours.o", *flags)
    assert (ours.returncode, _constant(ours.stderr)) == (plain.returncode, _constant(plain.stderr))


@pytest.mark.nvcc
def test_the_device_code_is_the_same_to_the_byte(
    compile_in: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path
):
    made: list[bytes] = []
    for by in ([], BY):
        assert compile_in(SOURCES["good"], by, "a.o").returncode == 0
        argv = ["objcopy", "-O", "binary", "--only-section=.nv_fatbin", "a.o", "a.bin"]
        subprocess.run(argv, cwd=tmp_path, check=True)
        made.append((tmp_path / "a.bin").read_bytes())
    assert len(made[0]) > 500
    assert made[1] == made[0]


@pytest.mark.nvcc
@pytest.mark.parametrize("name", ["good", "internal"])
def test_the_machine_code_is_the_same(
    name: str, compile_in: Callable[..., subprocess.CompletedProcess[str]], tmp_path: Path, nvcc: Nvcc
):
    if nvcc.cuobjdump is None:
        pytest.skip("no cuobjdump")
    made: list[str] = []
    for by in ([], BY):
        assert compile_in(SOURCES[name], by, "a.o").returncode == 0
        argv = [nvcc.cuobjdump, "--dump-sass", "a.o"]
        made.append(subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)
    assert "EXIT" in made[0]
    assert _constant(made[1]) == _constant(made[0])


@pytest.mark.nvcc
def test_builds_in_one_folder_do_not_meet(nvcc: Nvcc, level: SandboxLevel, tmp_path: Path):
    for index in range(3):
        (tmp_path / f"a{index}.cu").write_text(
            f"namespace {{ __global__ void k(float* x) {{ x[{index}] = 1; }} }}\n"
            f"void f{index}(float* x) {{ k<<<1, 1>>>(x); }}\n"
        )
    commands = Commands(tmp_path, 100.0, level, [str(Path(nvcc.path).parent)], readable=[Path(nvcc.home)])
    argvs = [[nvcc.path, *FLAGS, "-c", f"./a{index}.cu", "-o", f"a{index}.o"] for index in range(3)]
    with ThreadPoolExecutor(3) as pool:
        ran = list(pool.map(lambda argv: commands._run(argv, BY, 100.0, 1 << 20), argvs))
    assert [done.code for done in ran] == [0, 0, 0]
    assert [done.argv for done in ran] == argvs
    names = [re.findall(r"entry function '(\w+)'", done.output) for done in ran]
    assert [len(found) for found in names] == [1, 1, 1]
    assert len({found[0] for found in names}) == 3
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        f"a{index}.{end}" for index in range(3) for end in ("cu", "o")
    )


@pytest.mark.nvcc
def test_a_time_limit_ends_both_halves(nvcc: Nvcc, level: SandboxLevel, tmp_path: Path):
    (tmp_path / "a.cu").write_text("#include <regex>\n#include <iostream>\n" + SOURCES["good"])
    commands = Commands(tmp_path, 0.6, level, [str(Path(nvcc.path).parent)], readable=[Path(nvcc.home)])
    ran = commands.run([nvcc.path, *FLAGS, "-c", "./a.cu", "-o", "a.o"], by=BY)
    assert ran.timed_out
    assert not (tmp_path / "a.o").exists()
    assert "side_by_side" not in "".join(commands.log)
    assert not [p for p in Path("/proc").glob("[0-9]*/cmdline") if str(tmp_path).encode() in _bytes(p)]


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.nvcc
def test_the_fast_route_builds_so_and_logs_nvcc(cuda_builder: Builder, tmp_path: Path):
    text = (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        "m = load_inline('sbs', 'torch::Tensor f(torch::Tensor x);', '''"
        "namespace { __global__ void k(float* x) { x[threadIdx.x] *= 2; } }\\n"
        "torch::Tensor f(torch::Tensor x) { k<<<1, 32>>>(x.data_ptr<float>()); return x; }''', functions=['f'])\n"
        "class ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return m.f(x)\n"
    )
    built = cuda_builder.build(text, init_args=[], log_dir=tmp_path)
    assert built.ok, built.diagnostics
    assert [module.route for module in built.modules] == ["fast"]
    assert [kernel.name for kernel in built.modules[0].kernels] == ["(anonymous namespace)::k(float*)"]
    log = Path(built.log_path or "").read_text()
    assert cuda_builder.toolchain.nvcc is not None
    assert f"\n$ {cuda_builder.toolchain.nvcc.path} " in log
    assert "side_by_side" not in log
