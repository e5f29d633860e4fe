"""Files written for the user build with PyTorch alone: what our build supplied is in their text."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
KERNEL = '''kernel = """
__global__ void k(float* x) { x[0] = 1; }
torch::Tensor go(torch::Tensor x) { k<<<1, 1>>>(x.data_ptr<float>()); return x; }
"""
'''
TAIL = """
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.go(x)
"""
DECLARATION = "torch::Tensor go(torch::Tensor x);"


@pytest.fixture
def standalone(cuda_builder):
    def run(call: str, before: str = KERNEL) -> str:
        return cuda_builder.standalone(HEAD + before + call + TAIL, init_args=[])

    return run


def test_a_complete_file_is_left_alone(standalone, cuda_builder):
    source = HEAD + KERNEL + f'ext = load_inline("e", ["{DECLARATION}"], [kernel], functions=["go"])\n' + TAIL
    assert cuda_builder.standalone(source, init_args=[]) == source


@pytest.mark.parametrize(
    ("call", "completed"),
    [
        (
            'ext = load_inline(name="e", cpp_sources="", cuda_sources=kernel, functions=["go"])',
            f'ext = load_inline(name="e", cpp_sources=[{DECLARATION!r}], cuda_sources=kernel, functions=["go"])',
        ),
        (
            'ext = load_inline("e", None, kernel, functions=("go",))',
            f"ext = load_inline(\"e\", [{DECLARATION!r}], kernel, functions=['go'])",
        ),
        (
            'ext = load_inline(name="e-1", cuda_sources=[kernel])',
            f"ext = load_inline(name='e_1', cuda_sources=[kernel], cpp_sources=[{DECLARATION!r}], functions=['go'])",
        ),
        (
            f'ext = load_inline("e", "{DECLARATION}", kernel, ["go"])',
            f'ext = load_inline("e", "{DECLARATION}", kernel, None, functions=[\'go\'])',
        ),
        (
            'ext = load_inline("e", "int one();", kernel, functions=["go"])',
            f'ext = load_inline("e", ["int one();", {DECLARATION!r}], kernel, functions=["go"])',
        ),
        (
            f'ext = load_inline("é", "{DECLARATION}", kernel, functions="go", extra_cuda_cflags="-O3 -arch=sm_70")',
            f"ext = load_inline('_', \"{DECLARATION}\", kernel, functions=\"go\", extra_cuda_cflags=['-O3'])",
        ),
    ],
)
def test_arguments_are_completed_where_they_stand(standalone, call, completed):
    text = standalone(call + "\n")
    assert completed in text.splitlines()
    assert text.endswith(TAIL)


def test_calls_in_a_loop_are_completed_by_a_preamble(standalone):
    text = standalone('exts = [load_inline(n, "", kernel, functions=["go"]) for n in ("a", "b")]; ext = exts[0]\n')
    assert text.startswith("# Arguments of load_inline, completed")
    assert text.endswith(TAIL)
    compile(text, "solution.py", "exec")


def test_completed_file_needs_nothing_more(standalone, cuda_builder):
    for call in (
        'ext = load_inline("e", kernel, functions=["go"])\n',
        'exts = [load_inline(n, "", kernel, functions=["go"]) for n in ("a", "b")]; ext = exts[0]\n',
        'ext = load_inline("e", kernel + "PYBIND11_MODULE(e, m) { m.def(\\"go\\", &go); }", kernel)\n',
    ):
        text = standalone(call)
        assert cuda_builder.standalone(text, init_args=[]) == text


@pytest.mark.slow
def test_plain_load_inline_builds_the_completed_file(builder, tmp_path: Path):
    source = """
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="my-ext", cpp_sources='''
torch::Tensor twice(torch::Tensor x) { return x * 2; }
''', extra_cflags="-O1")
class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.twice(x)
"""
    text = builder.standalone(source, init_args=[])
    solution = tmp_path / "solution.py"
    solution.write_text(text + "\nassert ModelNew()(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]\nprint('built')\n")
    done = subprocess.run(
        [sys.executable, str(solution)],
        capture_output=True,
        text=True,
        timeout=280,
        env={"TORCH_EXTENSIONS_DIR": str(tmp_path / "ext"), "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin"},
    )
    assert done.stdout.strip().endswith("built"), done.stderr[-2000:]
