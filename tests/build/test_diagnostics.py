"""What compilers really print for the mistakes that models make, read into located records with a kind."""

from __future__ import annotations

from pathlib import Path

import pytest

from prompts import render as text_of
from tools.build.calls import BuildCall, SourcePart, Unit
from tools.build.commands import Commands
from tools.build.diagnostics import parse_output
from tools.build.kinds import CODES, kind_of
from tools.build.render import render
from tools.build.toolchain import ToolchainError, find_toolchain
from tools.reports import KernelReport
from tools.types import BuildResult, Diagnostic, Verdict

# One mistake per file; its first line tells where it is and which kind it must be told as.
MISTAKES = Path(__file__).parent / "mistakes"


def expected(text: str) -> tuple[int | None, str]:
    place, code = text.splitlines()[0].removeprefix("// ").split(": ")
    return (None if place == "no line" else int(place.removeprefix("line "))), code


def compile_text(text: str, language: str, folder: Path, level) -> list:
    unit = Unit(
        filename="cuda.cu" if language == "cuda" else "main.cpp",
        language="cuda" if language == "cuda" else "cpp",
        parts=[SourcePart(label="the_source", text=text)],
        implicit=["cstdint"],
    )
    call = BuildCall(index=0, name="m", call="", units=[unit])
    rendered = render(call, unit)
    (folder / unit.filename).write_text(rendered.text)
    toolchain = find_toolchain(cuda=language == "cuda")
    if language == "cuda":
        assert toolchain.nvcc is not None
        argv = [toolchain.nvcc.path, "-gencode=arch=compute_90a,code=sm_90a", "-c", unit.filename, "-o", "x.o"]
    else:
        include = [flag for path in toolchain.torch_include[:1] for flag in ("-isystem", path)]
        include += ["-isystem", toolchain.python_include]
        argv = [toolchain.cxx, "-std=c++20", *include, "-fsyntax-only", unit.filename]
    done = Commands(folder, 120, level).run(argv)
    assert not done.ok, "this source is meant to fail"
    return parse_output(done.output, [rendered], failed=True)


@pytest.mark.parametrize("name", sorted(path.name for path in MISTAKES.glob("*.cpp")))
def test_cpp_errors(name, tmp_path, level):
    text = (MISTAKES / name).read_text()
    line, code = expected(text)
    first = compile_text(text, "cpp", tmp_path, level)[0]
    assert (first.file, first.line, first.code) == ("the_source", line, code), first
    assert first.severity == "error" and first.source_line is not None


@pytest.mark.nvcc
@pytest.mark.parametrize("name", sorted(path.name for path in MISTAKES.glob("*.cu")))
def test_cuda_errors(name, tmp_path, level):
    try:
        find_toolchain(cuda=True)
    except ToolchainError as error:
        pytest.skip(str(error))
    text = (MISTAKES / name).read_text()
    line, code = expected(text)
    first = compile_text(text, "cuda", tmp_path, level)[0]
    assert (first.line, first.code) == (line, code), first
    assert line is None or first.file == "the_source"


def test_repeats_are_counted_and_warnings_left_out_of_failures():
    unit = Unit(filename="main.cpp", language="cpp", parts=[SourcePart(label="s", text="a\nb\nc")])
    rendered = render(BuildCall(index=0, name="m", call="", units=[unit]), unit)
    output = (
        "main.cpp:1:1: warning: unused variable 'z' [-Wunused]\n"
        "/usr/include/c++/12/vector:10:2: error: static assertion failed: no good\n"
        "main.cpp:2:5: error: 'q' was not declared in this scope\n"
        "main.cpp:2:5: error: 'q' was not declared in this scope\n"
    )
    found = parse_output(output, [rendered], failed=True)
    assert [(d.line, d.count) for d in found] == [(2, 2), (None, 1)]
    assert found[1].message == "static assertion failed: no good (in vector:10)"
    assert [d.severity for d in parse_output(output, [rendered], failed=False)] == ["error", "error", "warning"]


def test_codes_are_known_and_quotes_are_plain():
    assert kind_of("'x' was not declared in this scope") == "undeclared_name"
    assert kind_of("something nobody has seen") is None
    assert len(CODES) == len(set(CODES)) >= 20


@pytest.mark.parametrize("code", CODES)
def test_every_kind_has_a_hint_that_the_model_reads_once(code):
    def told(code: str) -> str:
        found = [Diagnostic(severity="error", message=f"message {n}", code=code) for n in (1, 2)]
        build = BuildResult(ok=False, verdict=Verdict.COMPILE_ERROR, source_key="k", diagnostics=found, seconds=1.0)
        return text_of("kernel", report=KernelReport(kernel="k1", asked="build", build=build))

    plain = told("no such kind")
    assert len(told(code).splitlines()) == len(plain.splitlines()) + 1
