"""A problem small enough to be judged in a moment, and candidates for it as a model would send them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transcripts import read_events
from transcripts.events import Event

PROBLEM = """
import torch
import torch.nn as nn

n = 512


class Model(nn.Module):
    def forward(self, x):
        return torch.tanh(x) * 0.5 + torch.sqrt(torch.abs(x) + 1.0)


def get_inputs():
    return [torch.randn(n, n)]


def get_init_inputs():
    return []
"""

# Without torch's headers, which the stock build of each confirmation would take twenty seconds to read.
GOOD = r'''import torch
import torch.nn as nn
from torch.utils.cpp_extension import load_inline

source = r"""
#include <pybind11/pybind11.h>
#include <cmath>
#include <cstdint>

void chain(int64_t x, int64_t y, int64_t count) {
    const float* in = reinterpret_cast<const float*>(x);
    float* out = reinterpret_cast<float*>(y);
    for (int64_t i = 0; i < count; i++) out[i] = std::tanh(in[i]) * 0.5f + std::sqrt(std::fabs(in[i]) + 1.0f);
}
"""

ext = load_inline(
    name="chain_ext",
    cpp_sources=source,
    functions=["chain"],
    extra_cflags=["-O3"],
    no_implicit_headers=True,
    with_pytorch_error_handling=False,
)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        y = torch.empty_like(x)
        ext.chain(x.data_ptr(), y.data_ptr(), x.numel())
        return y
'''

# Wrong in half of the values; the edit that mends it is WRONG_TO_GOOD.
WRONG = GOOD.replace("* 0.5f", "* 0.25f")
WRONG_TO_GOOD = {"old": "* 0.25f", "new": "* 0.5f"}

# torch.compile as a baseline is a matter of the evaluator; here it would only cost time.
CPU = ("--device", "cpu", "--no-compile")

BROKEN = GOOD.replace("#include <cmath>", "#error this never builds")


@dataclass
class Done:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Agent:
    """Runs the command line as a user would, in processes of its own; `folder` is the working directory."""

    def __init__(self, folder: Path, cache: Path) -> None:
        self.folder = folder
        self.problem = folder / "chain.py"
        self.problem.write_text(PROBLEM)
        self.environment = {
            **{name: value for name, value in os.environ.items() if not name.startswith("OPENAI_")},
            "KERNEL_AGENT_CACHE": str(cache),
            "PYTHONPATH": str(Path(__file__).parents[2]),
        }

    def start(self, *arguments: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "agent", *arguments],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A group of its own, so that a test can press Ctrl-C as a terminal does: for every process of the group.
            process_group=0,
        )

    def __call__(self, *arguments: str, timeout: float = 280) -> Done:
        process = self.start(*arguments)
        try:
            out, err = process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        assert "Traceback" not in err, err
        return Done(process.returncode, out, err)

    def solve(self, base_url: str, *more: str) -> list[str]:
        """The arguments of a run against a server on loopback."""
        return ["solve", str(self.problem), "--model", "test-model", "--base-url", base_url, *CPU, *more]

    @property
    def runs(self) -> list[Path]:
        return sorted((self.folder / "runs").glob("*")) if (self.folder / "runs").exists() else []

    @property
    def run(self) -> Path:
        """The only run there is."""
        (run,) = self.runs
        return run

    @property
    def result(self) -> dict[str, Any]:
        return json.loads((self.run / "result.json").read_text())

    @property
    def events(self) -> list[Event]:
        return read_events(self.run)
