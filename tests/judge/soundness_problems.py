"""Small problems, most of them such that a verdict on them says little."""

from __future__ import annotations

HEADER = """
import random
import numpy as np
import torch
import torch.nn as nn

n = {n}
"""


def problem(forward: str, *, inputs: str = "torch.randn(n, 64)", init: str = "pass", n: int = 128) -> str:
    """A problem file whose model has the given constructor and forward (one expression of `x`)."""
    return f"""{HEADER.format(n=n)}

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        {init}

    def forward(self, x):
        return {forward}


def get_inputs():
    return [{inputs}]


def get_init_inputs():
    return []
"""


SOUND = problem("torch.tanh(x) * 2.0 + x.abs()")
MEAN_OF_SOFTMAX = problem("torch.softmax(x, dim=1).mean(dim=1) - 1 / 64")
ONE_CLASS = problem("torch.softmax(x.sum(dim=1, keepdim=True), dim=1) * 3.0")
ONLY_WEIGHTS = problem("self.table.expand(x.shape)", init="self.register_buffer('table', torch.arange(64.0))")
HARDLY_A_CHANGE = problem("x + 1e-9 * self.linear(x)", init="self.linear = nn.Linear(64, 64)")
SATURATED = problem("torch.sigmoid(x)", inputs="1000 + torch.randn(n, 64)")
ALWAYS_SATURATED = problem("torch.sigmoid(x.abs() * 0 + 1000)")
CONSTANT_INPUT = problem("torch.tanh(x).cumsum(1)", inputs="torch.ones(n, 64)")
WEIGHTS_LOST = problem("torch.relu(x) + 1e-9 * self.linear(x)", init="self.linear = nn.Linear(64, 64)")
WEIGHTS_UNUSED = problem("torch.relu(x) * 2", init="self.linear = nn.Linear(64, 64)")
WEIGHTS_OF_ONE = problem("torch.relu(x) * self.gain", init="self.gain = nn.Parameter(torch.ones(64))")
ALL_NAN = problem("x / (x - x) * 0")
SOME_NAN = problem("torch.sqrt(x)")
OVERFLOW = problem("torch.exp(x * 100)")
OVERFLOW_ON_THE_WAY = problem("torch.log(torch.exp(x * 100))")
OTHER_GENERATOR = problem("x * random.SystemRandom().random()")
COUNTER = problem("self.step(x)", init="self.calls = 0").replace(
    "def forward", "def step(self, x):\n        self.calls += 1\n        return x * self.calls\n\n    def forward"
)
TORCH_RANDOM = problem("x * torch.rand_like(x)")
PYTHON_RANDOM = problem("x * random.random()", init="self.factor = random.random()")
NUMPY_RANDOM = problem(
    "x * np.random.rand()",
    inputs="torch.from_numpy(np.random.randn(n, 64).astype(np.float32))",
    init="self.factor = np.random.rand()",
)
UNSEEDED_CONSTRUCTION = problem("x * self.factor", init="self.factor = random.SystemRandom().random()")
ONE_OF_TWO = problem("(torch.tanh(x), x.sum(1) * 0)")
PREDICATES = problem("(x > 0, torch.isfinite(x))")
SCALAR_BF16 = problem("(x * x).mean()", inputs="torch.randn(n * 256, 64, dtype=torch.bfloat16)")
ILL_CONDITIONED = problem("((x + 1e8) - 1e8)")
TOO_LARGE = problem("x * 2", n=1 << 34)
EMPTY = problem("x[:0]")
SLOW_TO_DRAW = problem("x * 2", inputs="torch.stack([torch.randn(64) for _ in range(50_000_000)])")
ZERO_WEIGHTS = problem(
    "self.linear(x)", init="self.linear = nn.Linear(64, 64); [nn.init.zeros_(p) for p in self.parameters()]"
)
BIAS_BEFORE_NORM = problem(
    "torch.nn.functional.layer_norm(x @ self.weight + self.bias, (64,))",
    init="self.weight = nn.Parameter(torch.randn(64, 64)); self.bias = nn.Parameter(torch.randn(1))",
)
