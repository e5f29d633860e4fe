"""Errors that the fast route may judge by itself: those that torch's own headers could not have changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tools.build.calls import BuildCall, SourcePart, Unit
from tools.build.certain import certain_errors
from tools.build.commands import Commands
from tools.build.names import KnownNames, known_names, read_names
from tools.build.toolchain import find_toolchain
from tools.types import Diagnostic

PREPROCESSED = """
#define TORCH_CHECK(c) if (!(c)) {}
extern "C" { int printf(const char *format, ...); }
namespace c10 { namespace attr { static int hidden_symbol; } struct Half { int inside_half; }; }
namespace at { inline namespace v1 { Tensor empty_like(const Tensor & self, int parameter = f(3)); } }
inline int helper(int a) { int local_name = 1; return local_name; }
"""


@pytest.fixture(scope="module")
def headers(tmp_path_factory, level) -> KnownNames:
    """The names of this machine's own torch headers."""
    folder = tmp_path_factory.mktemp("names")
    found = known_names(find_toolchain(cuda=False), Commands(folder, 120, level), folder)
    assert found is not None
    assert known_names(find_toolchain(cuda=False), Commands(folder, 0, level), folder) == found, "kept in the cache"
    return found


def test_names_at_namespace_scope_and_nothing_else():
    found = read_names(PREPROCESSED)
    assert {"printf", "Half", "empty_like", "helper", "at", "c10"} <= found.names
    assert not {"hidden_symbol", "inside_half", "parameter", "local_name", "format", "self"} & found.names
    assert found.macros == {"TORCH_CHECK"}


def test_names_of_the_real_headers(headers):
    there = (
        "printf expf sqrt empty_like Tensor TORCH_CHECK AT_DISPATCH_FLOATING_TYPES int64_t parallel_for optional c10 py"
    )
    for name in there.split():
        assert headers.knows(name), name
    for name in ("num_tiles", "tid", "BLOCK_SIZE_M", "my_kernel", "undeclared_thing", "blockIdy"):
        assert not headers.knows(name), name


def call(text: str = "") -> BuildCall:
    unit = Unit(filename="main.cpp", language="cpp", parts=[SourcePart(label="cpp_sources", text=text)])
    return BuildCall(index=0, name="m", call="", units=[unit])


def error(code: str | None, message: str, file: str | None = "cpp_sources") -> Diagnostic:
    return Diagnostic(severity="error", code=code, message=message, file=file, line=1)


def sure(
    diagnostics: list[Diagnostic], known: Callable[[], KnownNames | None], text: str = "", thin: list[str] | None = None
) -> list[Diagnostic]:
    stock = find_toolchain(cuda=False).torch_include
    return certain_errors(diagnostics, call(text), thin=thin or [], stock=stock, known=known)


def never() -> KnownNames | None:
    raise AssertionError("no name had to be looked up")


@pytest.mark.parametrize(
    ("diagnostic", "certain"),
    [
        (error("static_shared_too_large", "uses too much shared data", None), True),
        (error("bad_ptx", "Arguments mismatch for instruction 'add'", None), True),
        (error("undefined_symbol", "f(int) is declared and used, and no source defines it"), True),
        (error("missing_header", "cutlass/cutlass.h: No such file or directory"), True),
        (error("missing_header", 'cannot open source file "my.cuh"'), True),
        (error("missing_header", "ATen/native/Pool.h: No such file or directory"), False),
        (error("missing_header", "pybind11/numpy.h: No such file or directory"), False),
        (error("wrong_arguments", "no matching function for call to 'f'"), False),
        (error("no_member", "class at::Tensor has no member 'foo'"), False),
        (error(None, "something else"), False),
    ],
)
def test_without_names(diagnostic, certain):
    assert bool(sure([diagnostic], never)) == certain


@pytest.mark.parametrize(
    ("message", "certain"),
    [
        ("'num_tiles' was not declared in this scope", True),
        ("'undeclared_thing' was not declared in this scope; did you mean 'x'?", True),
        ('identifier "tid" is undefined', True),
        ("'empty_like' was not declared in this scope", False),
        ('identifier "C10_LIKELY" is undefined', False),
        ("'foo' is not a member of 'at'", False),
    ],
)
def test_names(headers, message, certain):
    assert bool(sure([error("undeclared_name", message)], lambda: headers)) == certain


def test_a_source_with_a_header_that_was_not_read_is_left_to_the_stock_route(headers):
    diagnostic = error("undeclared_name", "'num_tiles' was not declared in this scope")
    assert sure([diagnostic], never, "#include <ATen/native/cuda/Loops.cuh>") == []
    assert sure([diagnostic], lambda: None) == []


def test_syntax_is_certain_when_no_unknown_macro_can_be_behind_it(headers, tmp_path):
    diagnostic = error("syntax", "expected ';' before 'return'")
    assert sure([diagnostic], lambda: headers, "int f() { int a = 1 return a; }") == [diagnostic]
    guarded = "int f(bool b) { TORCH_CHECK(b) return 1; }"
    assert sure([diagnostic], lambda: headers, guarded) == []
    (tmp_path / "thin.h").write_text("#define TORCH_CHECK(x)\n")
    assert sure([diagnostic], lambda: headers, guarded, [str(tmp_path)]) == [diagnostic]


def test_device_code_that_calls_a_host_function_of_its_own():
    called = 'calling a __host__ function("gate(float)") from a __global__ function("k") is not allowed'
    undefined = 'identifier "gate" is undefined in device code'
    for message in (called, undefined):
        diagnostic = error("host_device_call", message)
        assert sure([diagnostic], never, "float gate(float x) { return x; }") == [diagnostic]
        assert sure([diagnostic], never, "float other(float x) { return x; }") == []


def test_only_the_certain_ones_are_told():
    certain = error("undefined_symbol", "f() is declared and used, and no source defines it")
    assert sure([error("wrong_arguments", "no matching function"), certain], never) == [certain]
