"""What the analysis reads off a problem's text."""

from __future__ import annotations

import pytest

from problems import ProblemAnalysis, ProblemError, analyse, bundled_names, load_problem


def of(forward: str, init: str = "pass", before: str = "") -> ProblemAnalysis:
    """The analysis of a model with these bodies."""
    indented = "\n".join(f"        {line}" for line in forward.splitlines())
    return analyse(
        f"import math\nimport torch\nimport torch.nn.functional as F\nfrom torch import nn\n{before}\n\n"
        f"class Model(nn.Module):\n    def __init__(self, a, *, b=1):\n        {init}\n"
        f"    def forward(self, x, mask=None):\n{indented}\n\ndef get_inputs():\n    return [torch.rand(3)]\n"
    )


def test_arguments_and_sources() -> None:
    found = of("return x")
    assert found.forward_arguments == ("x", "mask")
    assert found.init_arguments == ("a", "b")
    assert found.input_sources == ("torch.rand",)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("torch.relu(x)", ("torch.relu",)),
        ("F.relu(x)", ("torch.nn.functional.relu",)),
        ("x @ x.T", ("matmul",)),
        ("x.softmax(-1).sum()", ("softmax", "sum")),
        ("self.norm(x)", ()),
        ("math.sqrt(2) * x", ("mul",)),
        ("torch.relu(x * 2 + 1) ** (3 * 2)", ("mul", "torch.relu")),
        ("torch.sum(torch.exp(x))", ("torch.exp", "torch.sum")),
    ],
)
def test_operators_in_the_order_they_run(expression: str, expected: tuple[str, ...]) -> None:
    assert of(f"return {expression}").operators == expected


def test_a_constructor_counts_only_its_modules() -> None:
    found = of(
        "return self.net(x)", "self.net = nn.Sequential(nn.Linear(3, 3), nn.ReLU()); self.w = torch.rand(3).exp()"
    )
    assert found.operators == ("torch.nn.Linear", "torch.nn.ReLU")
    assert found.random == ()


@pytest.mark.parametrize(
    ("forward", "init", "dropout", "training"),
    [
        ("return self.d(x)", "self.d = nn.Dropout(a)", ("torch.nn.Dropout",), ("torch.nn.Dropout",)),
        ("return F.dropout(x, 0.5)", "pass", ("torch.nn.functional.dropout",), ()),
        (
            "return self.m(x, x, x)",
            "self.m = nn.MultiheadAttention(8, 2, dropout=0.1)",
            ("torch.nn.MultiheadAttention",),
            ("torch.nn.MultiheadAttention",),
        ),
        ("return self.m(x, x, x)", "self.m = nn.MultiheadAttention(8, 2, dropout=0.0)", (), ()),
        ("return self.n(x)", "self.n = nn.BatchNorm2d(8)", (), ("torch.nn.BatchNorm2d",)),
    ],
)
def test_dropout_and_mode(forward: str, init: str, dropout: tuple[str, ...], training: tuple[str, ...]) -> None:
    found = of(forward, init)
    assert found.dropout == dropout
    assert found.training_mode == training
    assert found.random == dropout


@pytest.mark.parametrize(
    ("forward", "in_place", "mutated"),
    [
        ("return x.relu_()", ("relu_",), ("x",)),
        ("return F.relu(x, inplace=True)", ("torch.nn.functional.relu",), ()),
        ("torch.exp(x, out=x)\nreturn x", ("torch.exp",), ("x",)),
        ("x += 1\nreturn x", (), ("x",)),
        ("x[:, 0] = 0\nreturn x", (), ("x",)),
        ("x = x.clone()\nx.relu_()\nx += 1\nreturn x", ("relu_",), ()),
        ("y = x + 1\ny += x\nreturn y", (), ()),
    ],
)
def test_in_place(forward: str, in_place: tuple[str, ...], mutated: tuple[str, ...]) -> None:
    found = of(forward)
    assert found.in_place == in_place
    assert found.mutated_arguments == mutated


def test_random_and_nondeterministic() -> None:
    found = of("y = x + torch.randn_like(x)\nreturn y.scatter_add(0, mask, x)")
    assert found.random == ("torch.randn_like",)
    assert found.nondeterministic == ("scatter_add",)


@pytest.mark.parametrize(
    ("statement", "returns"),
    [
        ("return x + 1", "tensor"),
        ("return x, mask", "tuple of 2"),
        ("return [x]", "list of 1"),
        ("return {'a': x, 'b': mask}", "dict of a, b"),
        ("return self.f(x)", None),
        ("if mask is None:\n    return x, x\nreturn x + 1", None),
    ],
)
def test_returned_structure(statement: str, returns: str | None) -> None:
    assert of(statement).returns == returns


def test_constants_small_dtypes_and_imports() -> None:
    before = (
        "import numpy\nimport triton.language as tl\nfrom einops import rearrange\nn: int = 2 * 8\nk = torch.half\n"
    )
    found = of("return x.to(torch.bfloat16)", before=before + 'SMALL = {"n": 4}')
    assert found.constants == {"n": "2 * 8", "k": "torch.half"}
    assert found.small == {"n": "4"}
    assert found.dtypes == ("float16", "bfloat16")
    assert found.third_party_imports == ("triton", "einops")


def test_helper_classes_and_functions_count_too() -> None:
    found = of(
        "return Block()(act(x))",
        before="def act(x):\n    return F.gelu(x)\n\nclass Block(nn.Module):\n    def forward(self, x):\n"
        "        return x.sin()",
    )
    assert found.operators == ("torch.nn.functional.gelu", "sin")


def test_summary_comes_from_the_file_or_the_model() -> None:
    assert analyse('"""Adds\none.\n\nMore."""\n').summary == "Adds one."
    assert analyse('class Model:\n    """Of the model."""\n').summary == "Of the model."


def test_not_python() -> None:
    with pytest.raises(ProblemError, match=r"mine\.py, line 2"):
        analyse("x = 1\nx = = 2\n", "mine.py")


def test_every_bundled_problem_says_what_it_is_and_does() -> None:
    for name in bundled_names():
        found = analyse(load_problem(name).source)
        assert found.summary, name
        assert found.operators, name
        assert found.returns, name
        assert found.third_party_imports == (), name
        assert set(found.small) <= set(found.constants), name
