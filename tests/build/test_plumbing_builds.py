"""The seven ways in which a right kernel failed on `load_inline` before: each builds now, for real, with nvcc."""

from __future__ import annotations

import pytest
from build_sources import load

KERNEL = """
#include <torch/extension.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
"""
LAUNCH = """torch::Tensor relu(torch::Tensor x) {
  auto y = torch::empty_like(x);
  int n = x.numel();
  relu_kernel<<<(n + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), n);
  return y;
}
"""
MODULE = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu", &relu, "relu"); }\n'
CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline

cuda = r'''{cuda}'''
cpp = r'''{cpp}'''
ext = load_inline(name="relu_{name}", {arguments})


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return ext.relu(x)
"""

# What the model wrote: cpp_sources, cuda_sources, the call's other arguments; and a word of the note on what was added.
MISTAKES = {
    "no_forward_declaration": (
        "",
        KERNEL + LAUNCH,
        "cpp_sources=[], cuda_sources=cuda, functions=['relu']",
        "declared",
    ),
    "empty_cpp_sources": ("", KERNEL + LAUNCH, "cpp_sources='', cuda_sources=[cuda], functions=['relu']", "declared"),
    "module_and_functions": (
        "torch::Tensor relu(torch::Tensor x);",
        KERNEL + LAUNCH + MODULE,
        "cpp_sources=cpp, cuda_sources=cuda, functions=['relu']",
        "PYBIND11_MODULE of its own",
    ),
    "extern_c": (
        "torch::Tensor relu(torch::Tensor x);",
        KERNEL + 'extern "C" ' + LAUNCH,
        "cpp_sources=cpp, cuda_sources=cuda, functions=['relu']",
        "was replaced",
    ),
    "launch_in_cpp_sources": (
        "#include <torch/extension.h>\n" + LAUNCH,
        KERNEL,
        "cpp_sources=cpp, cuda_sources=cuda, functions=['relu']",
        "compiled as cuda_sources",
    ),
    "name_mismatch": (
        "",
        KERNEL + LAUNCH.replace(" relu(", " relu_cuda("),
        "cpp_sources=cpp, cuda_sources=cuda, functions=['relu']",
        "was added to call relu_cuda",
    ),
    "functions_as_text": ("", KERNEL + LAUNCH, "cpp_sources=None, cuda_sources=cuda, functions='relu(x)'", "declared"),
}


@pytest.fixture
def built(cuda_builder, tmp_path):
    def run(name: str, *, stock: bool = False):
        cpp, cuda, arguments, _ = MISTAKES[name]
        source = CANDIDATE.replace("{cuda}", cuda).replace("{cpp}", cpp).replace("{name}", name)
        return cuda_builder.build(source.replace("{arguments}", arguments), init_args=[], log_dir=tmp_path, stock=stock)

    return run


@pytest.mark.nvcc
@pytest.mark.parametrize("name", MISTAKES)
def test_it_builds_and_says_what_was_added(built, name):
    result = built(name)
    assert result.ok, [d.message for d in result.diagnostics]
    assert result.modules[0].functions == ["relu"]
    assert [k.name for k in result.modules[0].kernels] == ["relu_kernel(float const*, float*, int)"]
    assert any(MISTAKES[name][3] in line for line in result.added), result.added


@pytest.mark.gpu
@pytest.mark.parametrize("name", MISTAKES)
def test_it_computes(built, name):
    import torch

    x = torch.randn(1000, device="cuda")
    assert torch.equal(load(built(name)).relu(x), x.relu())


@pytest.mark.gpu
@pytest.mark.slow
def test_the_stock_route_computes_the_same(built):
    import torch

    result = built("extern_c", stock=True)
    assert result.ok, [d.message for d in result.diagnostics]
    assert result.modules[0].route == "stock"
    x = torch.randn(1000, device="cuda")
    assert torch.equal(load(result).relu(x), x.relu())


@pytest.mark.nvcc
def test_machine_code_is_read_where_there_is_a_disassembler(built, cuda_builder):
    if cuda_builder.toolchain.nvcc.cuobjdump is None:
        pytest.skip("no cuobjdump: pip install nvidia-cuda-cuobjdump")
    kernel = built("extern_c").modules[0].kernels[0]
    assert kernel.global_access == {"load.32": 1, "store.32": 1}
    assert kernel.local_memory_instructions == 0
