"""Many small launches on a GPU: the timing says what a graph would hide, and one large kernel hears nothing of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from problems import load_problem
from tools.evaluator import Evaluator, EvaluatorSettings
from tools.types import TimingResult, Verdict

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x):
        for _ in range(40):
            x = x * 0.99 + 0.01
        return x
def get_inputs():
    return [torch.rand({size})]
def get_init_inputs():
    return []
"""
CANDIDATE = """
import torch
from torch.utils.cpp_extension import load_inline
ext = load_inline(name="steps", cpp_sources="", cuda_sources='''
__global__ void step(const float* x, float* y, long n) {
  long i = blockIdx.x * (long)blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] * 0.99f + 0.01f;
}
torch::Tensor go(torch::Tensor x) {
  auto y = torch::empty_like(x);
  step<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
''', functions=["go"])
class ModelNew(torch.nn.Module):
    def forward(self, x):
        for _ in range(40):
            x = ext.go(x)
        return x
"""


@pytest.mark.gpu
@pytest.mark.parametrize(("size", "bound"), [(1000, True), (1 << 26, False)])
def test_what_a_graph_would_hide_is_said(tmp_path: Path, size: int, bound: bool):
    path = tmp_path / "steps.py"
    path.write_text(PROBLEM.replace("{size}", str(size)))
    settings = EvaluatorSettings(device="cuda", size="full", cache_dir=tmp_path / "cache", compile_baselines=False)
    with Evaluator(load_problem(str(path)), settings) as evaluator:
        result = evaluator.evaluate(CANDIDATE, tmp_path / "log")
    assert result.verdict is Verdict.CORRECT, result
    assert isinstance(result.timing, TimingResult)
    assert result.timing.in_a_row_us is not None
    assert ("launch_bound" in {f.code for f in result.timing.findings}) is bound
