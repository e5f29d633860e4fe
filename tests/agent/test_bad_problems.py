"""What `agent` says of a problem that can't be used: one line that names what is wrong and what to do next."""

from __future__ import annotations

import pytest
from agent_cases import GOOD, Agent

HEAD = "import torch\nimport torch.nn as nn\n\n"
MODEL = "class Model(nn.Module):\n    def forward(self, x):\n        return {}\n\n\n"
INPUTS = "def get_inputs():\n    return {}\n\n\n"
INIT = "def get_init_inputs():\n    return {}\n"
FINE, ONE = MODEL.format("x * 2"), INPUTS.format("[torch.ones(8)]")

BAD = {
    "init_number": (
        FINE + ONE + INIT.format(3),
        "get_init_inputs() returns a value of type int and no list: return a list with the arguments of Model, [] if",
    ),
    "init_module": (
        FINE + ONE + INIT.format("[nn.ReLU()]"),
        "get_init_inputs() returns a value of type ReLU, which can't be handed to a candidate: return tensors, numbers",
    ),
    "inputs_nothing": (FINE + INPUTS.format("None"), "get_inputs() returns nothing: return a list with the arguments"),
    "inputs_sparse": (
        FINE + INPUTS.format("[torch.ones(3, 3).to_sparse()]"),
        "get_inputs() returns a tensor of layout sparse_coo: return a dense one",
    ),
    "inputs_vary": (
        FINE + INPUTS.format("[torch.ones(int(torch.randint(9, 9999, ())))]"),
        "with other draws all shapes and dtypes must stay the same. Use sizes that are constants",
    ),
    "no_module": (
        "def Model():\n    return 3\n\n\n" + ONE,
        "Model(...) makes a value of type int, which is no torch.nn.Module: derive class Model from nn.Module.",
    ),
    "output_object": (
        MODEL.format("object()") + ONE,
        "Model.forward returns a value of type object, which can't be compared: return tensors, numbers",
    ),
    "output_sparse": (
        MODEL.format("x.to_sparse()") + ONE,
        "layout sparse_coo, which can't be compared: return it dense",
    ),
    "output_varies": (
        MODEL.format("x[x > 0]") + INPUTS.format("[torch.randn(9999)]"),
        "must stay the same. Return tensors of a fixed shape",
    ),
    "raises": (
        MODEL.format("x @ x[:3]") + ONE,
        "(line 6 of the problem). Correct forward, or get_inputs(), whose list are its arguments.",
    ),
    "package": (
        "import nosuchpackage\n" + FINE + ONE,
        "No module named 'nosuchpackage' (line 4 of the problem). Install nosuchpackage where `agent` is installed",
    ),
}


def test_each_of_many_is_told_what_to_do_next(agent: Agent):
    for name, (text, _) in BAD.items():
        (agent.folder / f"{name}.py").write_text(HEAD + text)
    done = agent("problems", "check", *(f"{name}.py" for name in BAD), "--device", "cpu")
    lines = done.out.splitlines()
    for (name, (_, said)), line in zip(BAD.items(), lines, strict=False):
        assert line.startswith(f"{name}.py: can't be used. ")
        assert said in line
    assert lines[len(BAD) :] == [f"0 of {len(BAD)} can be judged."]
    assert not done.err
    assert done.code == 2


@pytest.mark.parametrize("name", ["init_number", "no_module"])
def test_a_candidate_is_not_blamed(agent: Agent, name: str):
    text, said = BAD[name]
    (agent.folder / "bad.py").write_text(HEAD + text)
    (agent.folder / "kernel.py").write_text(GOOD)
    done = agent("evaluate", "bad.py", "kernel.py", "--device", "cpu")
    assert said in done.err
    assert len(done.err.splitlines()) == 1
    assert done.code == 2
