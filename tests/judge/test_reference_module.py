"""The reference as the judge holds it: seeds, sizes, its own flags, errors in the problem, and the fp64 oracle."""

from __future__ import annotations

import pytest
import torch

from problems import ProblemError
from tools.judge.reference import Reference, oracle_model, precision, run_oracle

HEAD = "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\nn = 64\nSMALL = {'n': 8}\n"


def problem(forward: str, *, init: str = "pass", inputs: str = "[torch.randn(n, 16)]", more: str = "") -> Reference:
    """A problem whose model has the given statements as constructor and forward."""
    source = f"""{HEAD}
class Model(nn.Module):
    def __init__(self, *args):
        super().__init__()
        {init}

    def forward(self, x):
        {forward}


def get_inputs():
    return {inputs}

{more}
"""
    return Reference(source, "full", "cpu")


def oracle(found: Reference, seed: int = 3) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """The oracle's output, the reference's, and the input."""
    model = found.build(seed)
    spec, tensors = found.inputs(seed)
    (truth,) = run_oracle(found, oracle_model(model), spec, tensors, None)
    (output,) = found.run(model, spec, tensors)[1]
    return truth, output, tensors[0]


@pytest.mark.parametrize(
    "forward",
    [
        "return torch.tanh(x) * 3",
        "return torch.tanh(x.float()) * 3",
        "return torch.tanh(x.to(torch.float32)) * 3",
        "return torch.tanh(x.half().float()) * 3",
        "return torch.tanh(x.type(torch.bfloat16)).to(dtype=torch.float32) * 3",
        "return torch.tanh(x) * torch.tensor(3.0)",
        "return torch.tanh(x) * torch.full((16,), 3.0)",
        "return torch.tanh(x) * torch.ones(16, dtype=torch.float32) * 3",
        "return torch.softmax(x, 1, dtype=torch.float32) * 0 + torch.tanh(x) * 3",
        "return torch.tanh(x).to(x.dtype) * 3",
    ],
)
def test_casts_inside_of_the_model_do_not_limit_the_oracle(forward: str):
    truth, _, x = oracle(problem(forward))
    assert truth.dtype is torch.float64
    assert torch.equal(truth, torch.tanh(x.double()) * 3)


def test_weights_are_doubled_and_integers_are_not():
    found = problem(
        "return self.embed(x) @ self.embed.weight.t() * self.gain",
        init="self.embed = nn.Embedding(50, 16); self.register_buffer('gain', torch.full((50,), 0.1))",
        inputs="[torch.randint(50, (n,))]",
    )
    truth, output, _ = oracle(found)
    assert truth.dtype is torch.float64
    assert 0 < float((truth - output).abs().max()) < 1e-4
    assert output.dtype is torch.float32
    # The model itself is left as it was.
    assert found.build(3).embed.weight.dtype is torch.float32  # pyright: ignore[reportAttributeAccessIssue]


def test_the_oracle_does_not_touch_the_inputs():
    found = problem("return x.mul_(2)")
    model = found.build(0)
    spec, tensors = found.inputs(1)
    before = tensors[0].clone()
    run_oracle(found, oracle_model(model), spec, tensors, None)
    assert torch.equal(tensors[0], before)


def test_a_dropout_is_the_same_for_whoever_is_given_the_same_seed():
    found = problem("return F.dropout(x, 0.5)")
    spec, tensors = found.inputs(1)
    model = found.build(0)
    one, two, other = (found.run(model, spec, tensors, seed=seed)[1][0] for seed in (5, 5, 6))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)


def test_the_same_seed_constructs_and_draws_the_same():
    found = problem("return self.linear(x)", init="self.linear = nn.Linear(16, 16)")
    assert torch.equal(found.build(7).linear.weight, found.build(7).linear.weight)  # pyright: ignore
    assert not torch.equal(found.build(7).linear.weight, found.build(8).linear.weight)  # pyright: ignore
    (a,), (b,), (c,) = (found.inputs(seed)[1] for seed in (7, 7, 8))
    assert torch.equal(a, b)
    assert not torch.equal(a, c)


def test_init_arguments_are_passed_and_stay_as_they_are():
    found = problem(
        "return x * self.scale",
        init="self.scale = args[0].pop()",
        more="def get_init_inputs():\n    return [[2.0, 3.0]]\n",
    )
    assert [float(found.build(seed).scale) for seed in (0, 1)] == [3.0, 3.0]  # pyright: ignore
    assert found.init_args == [[2.0, 3.0]]


def test_the_small_size_replaces_the_names_that_it_gives():
    source = HEAD + "class Model(nn.Module):\n    pass\ndef get_inputs():\n    return [torch.ones(n, 2)]\n"
    assert Reference(source, "full", "cpu").inputs(0)[1][0].shape == (64, 2)
    small = Reference(source, "small", "cpu")
    assert small.inputs(0)[1][0].shape == (8, 2)
    assert small.overrides == {"n": 8}


@pytest.mark.parametrize("before", [False, True])
@pytest.mark.parametrize("wanted", [False, True, None])
def test_flags_are_set_for_a_run_and_restored(before: bool, wanted: bool | None):
    backends = torch.backends
    kept = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
    backends.cuda.matmul.allow_tf32 = backends.cudnn.allow_tf32 = before
    try:
        with pytest.raises(KeyError), precision(tf32=wanted):
            inside = backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32
            assert inside == ((before, before) if wanted is None else (wanted, wanted))
            raise KeyError
        assert (backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32) == (before, before)
    finally:
        backends.cuda.matmul.allow_tf32, backends.cudnn.allow_tf32 = kept


def test_a_reference_that_flips_flags_has_them_put_back():
    found = problem("torch.backends.cudnn.allow_tf32 = False; return x * 2")
    kept = torch.backends.cudnn.allow_tf32
    torch.backends.cudnn.allow_tf32 = True
    try:
        spec, tensors = found.inputs(0)
        found.run(found.build(0), spec, tensors)
        assert torch.backends.cudnn.allow_tf32
    finally:
        torch.backends.cudnn.allow_tf32 = kept


def test_no_gradients_are_kept():
    found = problem("return self.linear(x)", init="self.linear = nn.Linear(16, 16)")
    spec, tensors = found.inputs(0)
    assert not found.run(found.build(0), spec, tensors)[1][0].requires_grad


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (HEAD + "1/0", r"the problem file raised ZeroDivisionError: division by zero \(line 7 of the problem\)"),
        (HEAD, "the problem file defines no Model once it has run: define it"),
        (HEAD + "class Model(nn.Module): pass", "the problem file defines no get_inputs once it has run"),
        (
            HEAD + "class Model: pass\ndef get_inputs(): return []\ndef get_init_inputs(): return 3",
            r"get_init_inputs\(\) returns a value of type int and no list: return a list with the arguments of Model, ",
        ),
        (HEAD + "raise SystemExit(0)", "the problem file raised SystemExit"),
        (HEAD + "class Model(\n", "the problem file raised SyntaxError"),
    ],
)
def test_a_problem_file_that_is_none_is_refused_with_its_line(source: str, said: str):
    with pytest.raises(ProblemError, match=said):
        Reference(source, "full", "cpu")


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        ("[]", r"returns no tensor: return a list with the arguments of Model\.forward"),
        ("3", "returns a value of type int and no list: return a list"),
        ("[object()]", "returns a value of type object, .* candidate: return tensors, numbers"),
        ("[torch.randn(n, missing)]", r"get_inputs raised NameError.*line 18 of the problem"),
    ],
)
def test_inputs_that_are_none_are_refused(inputs: str, said: str):
    with pytest.raises(ProblemError, match=said):
        problem("return x", inputs=inputs).inputs(0)


def test_a_constructor_that_raises_and_an_output_that_can_not_be_compared_are_refused():
    with pytest.raises(ProblemError, match=r"Model\(...\) raised RuntimeError: no"):
        problem("return x", init="raise RuntimeError('no')").build(0)
    found = problem("return object()")
    spec, tensors = found.inputs(0)
    with pytest.raises(ProblemError, match=r"Model\.forward returns a value of type object"):
        found.run(found.build(0), spec, tensors)
