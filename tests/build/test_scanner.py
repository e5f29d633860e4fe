"""The tokenizer and the scanner read definitions off C++ and CUDA text as models write it."""

from __future__ import annotations

import pytest

from tools.build.lexer import blank, line_of, tokenize
from tools.build.scanner import scan

SOURCE = r"""
#include <torch/extension.h>
#define TWO_LINES(a) \
  a
using Tensor = torch::Tensor;
// torch::Tensor in_comment(torch::Tensor x) { }
/* torch::Tensor in_block(torch::Tensor x) { } */
const char* text = "torch::Tensor in_string(int) {";
const char* raw = R"x(torch::Tensor in_raw(int) { ")x";
#if 0
torch::Tensor disabled() {}
#if 1
#endif
#else
int enabled() { return 1; }
#endif
template <typename T, int N = (3 > 2)> __global__ void kernel(const T* __restrict__ x, int n) { x[0]; }
__global__ __launch_bounds__(256, 2) void bounded(float* x) {}
extern "C" void launch(float* p, int n) { kernel<float><<<1, 2>>>(p, n); }
extern "C" {
  torch::Tensor declared_c(torch::Tensor a);
}
namespace outer { namespace inner {
static inline std::vector<torch::Tensor> nested(const at::Tensor& x, std::tuple<int, int> t = {1, 2}) { return {}; }
} }
namespace { int hidden(int a) { return a; } }
torch::Tensor
spread(
  torch::Tensor x, // a comment with ( in it
  double eps = 1e-5)
{
  if (x.numel() > 0) { return x; }
  return x;
}
auto trailing(int x) -> std::vector<int> { return {}; }
struct P { int a; void method(int) {} P(int x) : a(x) {} };
static int table[3] = {1, 2, 3};
enum class E : int { A };
[[nodiscard]] __device__ __forceinline__ float on_device(float x) { return x; }
std::function<void(int)> returns_function(int y);
DEFINE_SOMETHING(x)
int after_macro(int) { return 'a'; }
constexpr int SHIFTED = 1 << 4;
TORCH_LIBRARY(mine, m) { m.def("f", &f); }
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("f", &f, "doc"); }
int last() { return 1; }
"""


@pytest.fixture(scope="module")
def scanned():
    return scan(SOURCE)


def test_finds_every_definition_and_nothing_in_text_or_comments(scanned):
    assert [f.qualified for f in scanned.functions if f.defined] == [
        "enabled",
        "kernel",
        "bounded",
        "launch",
        "outer::inner::nested",
        "hidden",
        "spread",
        "trailing",
        "on_device",
        "after_macro",
        "last",
    ]
    assert [f.name for f in scanned.functions if not f.defined] == ["declared_c", "returns_function"]


def test_knows_what_a_function_is(scanned):
    by_name = {f.name: f for f in scanned.functions}
    assert by_name["kernel"].kernel and by_name["kernel"].template
    assert by_name["bounded"].kernel and not by_name["bounded"].template
    assert by_name["launch"].c_linkage and by_name["declared_c"].c_linkage and not by_name["spread"].c_linkage
    assert by_name["nested"].internal and by_name["hidden"].internal and not by_name["spread"].internal
    assert by_name["on_device"].device_only and not by_name["on_device"].host
    assert by_name["spread"].host


def test_macro_blocks_aliases_and_includes(scanned):
    assert [(b.macro, b.arguments) for b in scanned.blocks] == [
        ("TORCH_LIBRARY", ["mine", "m"]),
        ("PYBIND11_MODULE", ["TORCH_EXTENSION_NAME", "m"]),
    ]
    assert scanned.aliases == {"Tensor": "using Tensor = torch::Tensor;"}
    assert scanned.includes == ["<torch/extension.h>"]
    assert scanned.macros == {"TWO_LINES"}
    assert scanned.device_code


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "}",
        "(((",
        "torch::Tensor f(",
        '"unclosed',
        "/* open",
        "#if 0\nint f() {}",
        "template <",
        "<<<>>>",
        "int f() { {",
        "\\",
    ],
)
def test_broken_text_never_raises(text):
    scan(text)


def test_launch_is_told_from_template_brackets():
    assert scan("void f() { k<<<1, 2>>>(x); }").device_code
    assert not scan("std::vector<std::vector<std::vector<int>>> f() { return {}; }").device_code
    assert not scan('const char* s = "__global__ <<<";').device_code


def test_tokens_keep_their_place():
    text = "int a = 1'000; // note\nfloat b = 1.5e-3f;"
    tokens = tokenize(text)
    assert [t.text for t in tokens] == ["int", "a", "=", "1'000", ";", "float", "b", "=", "1.5e-3f", ";"]
    assert all(text[t.start : t.end] == t.text for t in tokens)
    assert line_of(text, tokens[5].start) == 2


def test_blank_keeps_lines():
    assert blank("ab\ncd\nef", 1, 7) == "a \n  \n f"
