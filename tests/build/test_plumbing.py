"""What models send to `load_inline`, and the build call that it must become."""

from __future__ import annotations

import pytest

from tools.build.calls import CaughtCall, fingerprint, plain
from tools.build.draft import PlumbingError
from tools.build.plumbing import function_list, module_name, python_uses, settle
from tools.build.render import render

KERNEL = """#include <torch/extension.h>
__global__ void relu_kernel(const float* x, float* y, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] > 0 ? x[i] : 0;
}
"""
LAUNCH = """torch::Tensor relu_cuda(torch::Tensor x) {
  auto y = torch::empty_like(x);
  relu_kernel<<<(x.numel() + 255) / 256, 256>>>(x.data_ptr<float>(), y.data_ptr<float>(), x.numel());
  return y;
}
"""
DECLARATION = "torch::Tensor relu_cuda(torch::Tensor x);"
BINDING = 'PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("relu_cuda", &relu_cuda, "relu"); }\n'


def caught(name="ext", kind="load_inline", files=None, **arguments):
    given = plain(arguments)
    return CaughtCall(kind=kind, name=name, fingerprint=fingerprint(kind, given), arguments=given, files=files or {})


def build(device="cuda", uses=frozenset(), **arguments):
    call, findings = settle(
        caught(**arguments), 0, device=device, arch="sm_90a", std="-std=c++20", uses=frozenset(uses)
    )
    assert not [f for f in findings if f.severity == "error"]
    return call


def texts(call):
    return {unit.filename: render(call, unit).text for unit in call.units}


def test_complete_source_is_what_torch_would_write():
    call = build(cpp_sources=[DECLARATION], cuda_sources=[KERNEL + LAUNCH], functions=["relu_cuda"])
    assert call.added == []
    assert texts(call) == {
        "main.cpp": "\n".join(
            [
                "#include <torch/extension.h>",
                DECLARATION,
                "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {",
                'm.def("relu_cuda", torch::wrap_pybind_function(relu_cuda), "relu_cuda");',
                "}",
            ]
        ),
        "cuda.cu": "\n".join(
            ["#include <torch/types.h>", "#include <cuda.h>", "#include <cuda_runtime.h>", KERNEL + LAUNCH]
        ),
    }


@pytest.mark.parametrize("cpp", ["", None, [], [""], "\n  \n", ("",)])
def test_missing_forward_declaration_is_derived(cpp):
    call = build(cpp_sources=cpp, cuda_sources=KERNEL + LAUNCH, functions=["relu_cuda"])
    assert DECLARATION in texts(call)["main.cpp"].splitlines()
    assert call.added == [f"declared in cpp_sources: {DECLARATION}"]


@pytest.mark.parametrize(
    "functions",
    [
        ["relu_cuda"],
        ("relu_cuda",),
        "relu_cuda",
        {"relu_cuda": "does relu"},
        ["relu_cuda", "relu_cuda"],
        "relu_cuda()",
        [DECLARATION],
    ],
)
def test_functions_in_any_form(functions):
    call = build(cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, functions=functions)
    assert call.functions == ["relu_cuda"]


def test_documentation_of_a_dict_is_kept_and_escaped():
    call = build(cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, functions={"relu_cuda": 'a "quoted"\nline'})
    assert (
        r'm.def("relu_cuda", torch::wrap_pybind_function(relu_cuda), "a \"quoted\"\nline");' in texts(call)["main.cpp"]
    )


def test_nothing_bound_binds_what_python_calls():
    source = KERNEL + LAUNCH + "torch::Tensor helper(torch::Tensor x) { return x; }\n"
    call = build(cpp_sources="", cuda_sources=source, uses={"relu_cuda"})
    assert call.functions == ["relu_cuda"]
    assert build(cpp_sources="", cuda_sources=source).functions == ["relu_cuda", "helper"]


@pytest.mark.parametrize("where", ["cpp_sources", "cuda_sources"])
def test_own_module_beats_functions(where):
    arguments = {"cpp_sources": DECLARATION, "cuda_sources": KERNEL + LAUNCH}
    arguments[where] += "\n" + BINDING
    call = build(**arguments, functions=["relu_cuda"])
    assert call.bindings is None
    assert "".join(texts(call).values()).count("PYBIND11_MODULE") == 1
    assert any("PYBIND11_MODULE of its own" in line for line in call.added)


def test_own_module_without_declaration_gets_one_before_it():
    call = build(cpp_sources="#include <torch/extension.h>\n" + BINDING, cuda_sources=KERNEL + LAUNCH)
    lines = texts(call)["main.cpp"].splitlines()
    assert lines.index(DECLARATION) == lines.index(BINDING.strip()) - 1
    assert call.units[0].parts[1].line == 2


def test_own_module_that_forgets_a_function_is_completed():
    source = KERNEL + LAUNCH + "torch::Tensor other(torch::Tensor x) { return x; }\n" + BINDING
    call = build(cpp_sources="", cuda_sources=source, functions=["relu_cuda", "other"])
    assert '{ m.def("relu_cuda", &relu_cuda, "relu");  m.def("other", &other); }' in texts(call)["cuda.cu"]


def test_own_module_is_not_completed_with_what_does_not_exist():
    call = build(cpp_sources="", cuda_sources=KERNEL + LAUNCH + BINDING, functions=["relu_cuda", "forward"])
    assert "forward" not in "".join(texts(call).values())


def test_two_modules_leave_one():
    call = build(cpp_sources=DECLARATION + "\n" + BINDING, cuda_sources=KERNEL + LAUNCH + BINDING)
    assert "".join(texts(call).values()).count("PYBIND11_MODULE") == 1
    assert "PYBIND11_MODULE" in texts(call)["main.cpp"]


def test_module_macro_with_a_name_of_its_own():
    call = build(
        cpp_sources=DECLARATION + BINDING.replace("TORCH_EXTENSION_NAME", "something"), cuda_sources=KERNEL + LAUNCH
    )
    assert "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m)" in texts(call)["main.cpp"]


def test_extern_c_definition_is_declared_alike():
    call = build(cpp_sources="", cuda_sources=KERNEL + 'extern "C" ' + LAUNCH, functions=["relu_cuda"])
    assert f'extern "C" {DECLARATION}' in texts(call)["main.cpp"]


def test_extern_c_on_one_side_only_is_settled_by_the_definition():
    call = build(
        cpp_sources=DECLARATION, cuda_sources=KERNEL + 'extern "C" {\n' + LAUNCH + "}", functions=["relu_cuda"]
    )
    lines = [line.strip() for line in texts(call)["main.cpp"].splitlines() if "relu_cuda(" in line]
    assert lines == [f'extern "C" {DECLARATION}']


def test_extern_c_round_a_template_is_dropped():
    source = (
        'extern "C" {\ntemplate <typename T> __global__ void k(T* x) {}\n' + LAUNCH.replace("relu_kernel", "k") + "}\n"
    )
    text = texts(build(cpp_sources="", cuda_sources=source, functions=["relu_cuda"]))
    assert 'extern "C"' not in text["cuda.cu"] + text["main.cpp"]
    assert text["cuda.cu"].count("{") == text["cuda.cu"].count("}")


@pytest.mark.parametrize("cuda", [None, "", []])
def test_kernels_in_cpp_sources_go_to_nvcc(cuda):
    call = build(cpp_sources=KERNEL + LAUNCH, cuda_sources=cuda, functions=["relu_cuda"])
    assert "__global__" not in texts(call)["main.cpp"]
    assert "__global__" in texts(call)["cuda.cu"]
    assert DECLARATION in texts(call)["main.cpp"]
    assert call.with_cuda


def test_binding_beside_kernels_in_cpp_sources_stays_in_cpp():
    text = texts(build(cpp_sources=KERNEL + LAUNCH + BINDING, functions=None))
    assert "PYBIND11_MODULE" in text["main.cpp"] and DECLARATION in text["main.cpp"]
    assert "PYBIND11_MODULE" not in text["cuda.cu"]


def test_same_text_on_both_sides_counts_once():
    call = build(cpp_sources=KERNEL + LAUNCH, cuda_sources=KERNEL + LAUNCH, functions=["relu_cuda"])
    assert texts(call)["cuda.cu"].count("__global__") == 1
    assert "__global__" not in texts(call)["main.cpp"]


def test_declaration_that_differs_from_the_definition_is_replaced():
    wrong = "torch::Tensor relu_cuda(torch::Tensor x, int n);"
    call = build(cpp_sources=wrong, cuda_sources=KERNEL + LAUNCH, functions=["relu_cuda"])
    assert [
        line.strip() for line in texts(call)["main.cpp"].splitlines() if "relu_cuda(" in line and "m.def" not in line
    ] == [DECLARATION]


@pytest.mark.parametrize(
    "declared",
    [
        "at::Tensor relu_cuda(at::Tensor);",
        "torch::Tensor relu_cuda(const torch::Tensor x);",
        "extern torch::Tensor relu_cuda(torch::Tensor input);",
    ],
)
def test_declaration_that_says_the_same_in_other_words_stays(declared):
    call = build(cpp_sources=declared, cuda_sources=KERNEL + LAUNCH, functions=["relu_cuda"])
    assert call.added == []
    assert declared in texts(call)["main.cpp"]


@pytest.mark.parametrize("word", ["static ", "inline ", "static inline "])
def test_hidden_launcher_is_made_visible(word):
    call = build(cpp_sources="", cuda_sources=KERNEL + word + LAUNCH, functions=["relu_cuda"])
    assert DECLARATION in texts(call)["main.cpp"]
    assert word not in texts(call)["cuda.cu"]


def test_namespace_multiple_lines_defaults_and_comments():
    source = """namespace ops {
std::vector<torch::Tensor>
forward(
    const torch::Tensor& x,          // the input, (N, C)
    c10::optional<torch::Tensor> bias = c10::nullopt,
    double eps = 1e-5 /* small */, std::tuple<int, int> shape = {1, 2})
{ return {x}; }
}"""
    call = build(cpp_sources="", cuda_sources=KERNEL + source, functions=["forward"])
    assert (
        "namespace ops { std::vector<torch::Tensor> forward(const torch::Tensor& x, c10::optional<torch::Tensor> bias, "
        "double eps, std::tuple<int, int> shape); } using ops::forward;" in texts(call)["main.cpp"]
    )


def test_bare_tensor_and_aliases_come_along():
    source = "using namespace torch;\nusing Vec = std::vector<Tensor>;\nVec f(Tensor x) { return {x}; }"
    lines = texts(build(cpp_sources="", cuda_sources=KERNEL + source, functions=["f"]))["main.cpp"].splitlines()
    assert "Vec f(torch::Tensor x);" in lines
    assert lines.index("using Vec = std::vector<torch::Tensor>;") < lines.index("Vec f(torch::Tensor x);")


def test_function_called_inside_cpp_is_declared_before_its_use():
    cpp = "#include <vector>\nstatic int N = 3;\ntorch::Tensor relu(torch::Tensor x) {\n  return relu_cuda(x);\n}"
    call = build(cpp_sources=cpp, cuda_sources=KERNEL + LAUNCH, functions=["relu"])
    lines = texts(call)["main.cpp"].splitlines()
    assert (
        lines.index("static int N = 3;")
        < lines.index(DECLARATION)
        < lines.index("torch::Tensor relu(torch::Tensor x) {")
    )
    rendered = render(call, call.units[0])
    assert rendered.locate(lines.index("  return relu_cuda(x);") + 1) == ("cpp_sources", 4)


def test_unresolved_name_is_an_error_that_lists_what_there_is():
    with pytest.raises(
        PlumbingError, match="functions names relu, which no source defines; defined are relu_cuda"
    ) as e:
        build(cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, functions=["relu"], uses={"relu_cuda"})
    assert e.value.diagnostic.code == "binding_mismatch"


@pytest.mark.parametrize(
    "before", ["static const int WIDTH = 4\n", "struct Shape { int n; }\n", "int helper() { return 1;\n"]
)
def test_a_definition_behind_a_mistake_is_left_to_the_compiler(before: str):
    source = "#include <torch/extension.h>\n" + before + "torch::Tensor twice(torch::Tensor x) { return x * 2; }\n"
    call = build(cpp_sources=source, functions=["twice"], uses={"twice"})
    assert before in texts(call)["main.cpp"]


def test_name_that_python_calls_reaches_the_only_function_there_is():
    call = build(cpp_sources="", cuda_sources=KERNEL + LAUNCH, functions=["relu"], uses={"relu"})
    assert "torch::Tensor relu(torch::Tensor x) { return relu_cuda(x); }" in texts(call)["main.cpp"]
    assert call.functions == ["relu"]


def test_kernel_or_template_can_not_be_bound():
    with pytest.raises(PlumbingError, match="relu_kernel<<<grid, block>>>"):
        build(cpp_sources="", cuda_sources=KERNEL + LAUNCH, functions=["relu_kernel"])
    with pytest.raises(PlumbingError, match="is a template"):
        build(cpp_sources="", cuda_sources="template <typename T> T f(T x) { return x; }\n" + KERNEL, functions=["f"])


def test_function_made_by_a_macro_is_left_to_the_compiler():
    source = KERNEL + "#define OP(n) torch::Tensor n##_op(torch::Tensor x) { return x; }\nOP(a)\n"
    assert build(
        cpp_sources="torch::Tensor a_op(torch::Tensor x);", cuda_sources=source, functions=["a_op"]
    ).functions == ["a_op"]


def test_copy_of_a_host_function_becomes_a_declaration():
    call = build(
        cpp_sources=LAUNCH.replace("relu_kernel<<<(x.numel() + 255) / 256, 256>>>", "go"),
        cuda_sources=KERNEL + LAUNCH.replace("relu_kernel<<<(x.numel() + 255) / 256, 256>>>", "go"),
        functions=["relu_cuda"],
    )
    assert texts(call)["main.cpp"].count("return y;") == 0


@pytest.mark.parametrize(
    ("given", "name"),
    [("my-ext", "my_ext"), ("1st", "m_1st"), ("a.b c", "a_b_c"), ("class", "m_class"), ("ok_1", "ok_1"), ("é", "_")],
)
def test_module_names_become_identifiers(given, name):
    assert module_name(given) == name


def test_cuda_on_the_cpu_says_what_to_write():
    for arguments in ({"cuda_sources": KERNEL}, {"cpp_sources": KERNEL + LAUNCH}):
        with pytest.raises(PlumbingError, match=r"the target is the CPU.*plain C\+\+ in cpp_sources"):
            build(device="cpu", **arguments)


def test_cpu_call_drops_with_cuda():
    call = build(
        device="cpu", cpp_sources="torch::Tensor f(torch::Tensor x) { return x; }", functions="f", with_cuda=True
    )
    assert not call.with_cuda
    assert len(call.units) == 1


def test_with_cuda_is_inferred():
    host = "torch::Tensor f(torch::Tensor x) { return x; }"
    assert build(cpp_sources="#include <ATen/cuda/CUDAContext.h>\n" + host, functions="f").with_cuda
    assert not build(cpp_sources=host, functions="f").with_cuda
    assert build(
        cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, functions="relu_cuda", with_cuda=False
    ).with_cuda


def test_no_source_at_all():
    with pytest.raises(PlumbingError, match="has no source text"):
        build(cpp_sources="", cuda_sources="", functions=["f"])


def test_only_kernels_and_nothing_to_bind():
    with pytest.raises(PlumbingError, match="no host function that Python could call"):
        build(cpp_sources="", cuda_sources=KERNEL)


def test_load_takes_its_files():
    files = {"bind.cpp": '#include "k.h"\n' + BINDING, "k.cu": KERNEL + LAUNCH, "k.h": "#pragma once\n" + DECLARATION}
    call = build(kind="load", sources=["/tmp/x/bind.cpp", "/tmp/x/k.cu"], files=files)
    assert [(u.filename, u.language) for u in call.units] == [("bind.cpp", "cpp"), ("k.cu", "cuda")]
    assert [h.label for h in call.headers] == ["k.h"]
    assert texts(call)["k.cu"] == files["k.cu"]
    with pytest.raises(PlumbingError, match=r"names /tmp/x/gone\.cu, which does not exist"):
        build(kind="load", sources=["/tmp/x/gone.cu"], files={})


def test_load_without_binding_gets_one():
    call = build(kind="load", sources="k.cu", files={"k.cu": KERNEL + LAUNCH})
    assert call.functions == ["relu_cuda"]
    assert DECLARATION in texts(call)["bindings.cpp"] and "PYBIND11_MODULE" in texts(call)["bindings.cpp"]


def test_operator_library_needs_no_binding():
    source = 'torch::Tensor f(torch::Tensor x) { return x; }\nTORCH_LIBRARY(mine, m) { m.def("f", &f); }'
    assert build(device="cpu", cpp_sources=source).bindings == []
    assert build(device="cpu", cpp_sources=source, is_python_module=False).bindings is None


def test_function_list_rejects_what_is_no_name():
    assert function_list("a, b") == [("a", "a", None), ("b", "b", None)]
    assert function_list(["ns::f"]) == [("ns::f", "ns::f", "f")]
    assert function_list([]) is None
    for bad in (["a-b"], ["f<float>"], 3):
        with pytest.raises(PlumbingError):
            function_list(bad)


def test_python_uses():
    assert python_uses("import a\nb = a.c(a.d)\ns = 'x.e'") == {"c", "d"}
    assert python_uses("def (") == frozenset()


def test_fingerprint_ignores_the_name_and_sees_the_text():
    same = {"cpp_sources": "a", "functions": ["f"], "verbose": True}
    assert fingerprint("load_inline", same) == fingerprint("load_inline", {**same, "verbose": False})
    assert fingerprint("load_inline", same) != fingerprint("load_inline", {**same, "cpp_sources": "b"})
    assert fingerprint("load_inline", {"functions": ("f",)}) == fingerprint("load_inline", {"functions": ["f"]})


def test_functions_in_the_place_of_sycl_sources_are_functions():
    call = build(cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, sycl_sources=["relu_cuda"])
    assert call.functions == ["relu_cuda"]
    assert any("sycl_sources" in note for note in call.added)


def test_sycl_sources_say_what_to_write_instead():
    with pytest.raises(PlumbingError) as caught:
        build(cpp_sources=DECLARATION, cuda_sources=KERNEL + LAUNCH, sycl_sources=["void f() { q.submit(); }"])
    assert "cuda_sources" in str(caught.value)


@pytest.mark.parametrize(
    ("written", "built"),
    [
        ("x.sum({0, 1})", "x.sum(at::IntArrayRef{0, 1})"),
        ("x.mean({0, -1}, true)", "x.mean(at::IntArrayRef{0, -1}, true)"),
        ("x.norm(2, {0, x.dim() - 1})", "x.norm(2, at::IntArrayRef{0, x.dim() - 1})"),
        ("x.mean({0, d}, true)", "x.mean(at::IntArrayRef{0, d}, true)"),
        ("at::sum(x.exp(), {0, 2}, true)", "at::sum(x.exp(), at::IntArrayRef{0, 2}, true)"),
        ("p->var({0, 1}, false)", "p->var(at::IntArrayRef{0, 1}, false)"),
        ("x.mean({0, 2, 3})", None),
        ("x.mean({1, 2})", None),
        ("sum({0, 1})", None),
        ("x.permute({0, 1})", None),
        ('log("x.sum({0, 1})")', None),
    ],
)
def test_a_pair_of_dimensions_is_no_null_pointer(written, built):
    source = "torch::Tensor f(torch::Tensor x, int d) { %s; return x; }\n"
    call = build(cpp_sources=source % written, functions=["f"])
    text = call.units[0].parts[-1].text
    assert source % (built or written) == text
    assert bool(built) == any("IntArrayRef" in note for note in call.added)
