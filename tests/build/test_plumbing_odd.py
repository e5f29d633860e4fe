"""Whatever a candidate passes to `load_inline`, plumbing answers with a build call or a message, and never breaks."""

from __future__ import annotations

import random

import pytest

from tools.build.calls import CaughtCall, fingerprint, plain
from tools.build.draft import PlumbingError
from tools.build.plumbing import settle
from tools.build.render import render
from tools.build.standalone import differs

PIECES = [
    "torch::Tensor f(torch::Tensor x) { return x; }",
    "__global__ void k(float* x) { x[0] = 1; }",
    "void g() { k<<<1, 1>>>(nullptr); }",
    "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def(\"f\", &f); }",
    "extern \"C\" {",
    "namespace a { namespace {",
    "}",
    "template <typename T, int N = (1 > 0)>",
    "torch::Tensor f(torch::Tensor x);",
    "static inline",
    "#if 0\nint hidden() {\n#endif",
    "#define OP(n) int n##_op() { return 1; }",
    "OP(a)",
    "TORCH_LIBRARY(lib, m) { m.def(\"f\", &f); }",
    "using T = torch::Tensor;",
    "auto h(int) -> T { return {}; }",
    "/* open comment",
    "\"open string",
    "R\"x( raw )x\"",
    "struct S { void f(); S(); };",
    "operator int();",
    "(", ")", "<", ">", ";", "\\", "\x00", "é", "",
]  # fmt: skip
VALUES = [
    None,
    "",
    0,
    1.5,
    True,
    [],
    {},
    "f",
    ["f"],
    ["f", "g"],
    {"f": "doc"},
    [["f"]],
    [None],
    ["-O3"],
    "-O3 -Wall",
    [3],
]
NAMES = [
    "functions",
    "extra_cflags",
    "extra_cuda_cflags",
    "extra_ldflags",
    "extra_include_paths",
    "with_cuda",
    "verbose",
    "is_python_module",
    "no_implicit_headers",
    "with_pytorch_error_handling",
    "sources",
]


def arguments(choose: random.Random) -> dict[str, object]:
    made: dict[str, object] = {}
    for name in ("cpp_sources", "cuda_sources"):
        if choose.random() < 0.2:
            made[name] = choose.choice(VALUES)
        else:
            text = "\n".join(choose.choices(PIECES, k=choose.randrange(7)))
            made[name] = [text] if choose.random() < 0.5 else text
    for name in choose.sample(NAMES, choose.randrange(4)):
        made[name] = choose.choice(VALUES)
    return made


@pytest.mark.parametrize("seed", range(20))
def test_random_calls_settle_or_say_why(seed):
    choose = random.Random(seed)
    for _ in range(100):
        given = plain(arguments(choose))
        kind = "load" if choose.random() < 0.1 else "load_inline"
        caught = CaughtCall(
            kind=kind, name=choose.choice(["m", "", "a-b", "class", "1"]), fingerprint=fingerprint(kind, given),
            arguments=given, files={"a.cu": choose.choice(PIECES)} if kind == "load" else {},
        )  # fmt: skip
        try:
            call, _ = settle(caught, 0, device=choose.choice(["cpu", "cuda"]), arch="sm_90a", std="-std=c++20")
        except PlumbingError as error:
            assert error.diagnostic.message and error.diagnostic.code
            continue
        assert all(isinstance(render(call, unit).text, str) for unit in call.units)
        assert isinstance(differs(caught, call), bool)
