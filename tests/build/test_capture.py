"""Running a candidate's file up to its builds: what is caught, and which verdict ends a build before it begins."""

from __future__ import annotations

import pytest
from build_sources import light

from tools.build.capturing import capture_calls
from tools.build.pretence import device_properties
from tools.types import Verdict

MODEL = "\nimport torch\nclass ModelNew(torch.nn.Module):\n    pass\n"


@pytest.fixture
def capture(nursery, builder):
    def run(source: str, *, device: str = "cpu", init_args=None):
        properties = device_properties("sm_90a") if device == "cuda" else None
        return capture_calls(nursery, builder.cache, source, properties=properties, init_args=init_args)

    return run


def verdict(captured):
    found = captured.diagnostics + captured.findings
    return captured.verdict, found[0].code if found else None


@pytest.mark.parametrize(
    ("source", "expected", "code"),
    [
        ("import torch\nx = (\n" + MODEL, Verdict.LOAD_ERROR, "python_syntax"),
        ("import nothing_like_this" + MODEL, Verdict.LOAD_ERROR, "python_missing_module"),
        ("x = undefined_name" + MODEL, Verdict.LOAD_ERROR, "python_name"),
        ("1 / 0" + MODEL, Verdict.LOAD_ERROR, "python_error"),
        ("import sys; sys.exit(0)" + MODEL, Verdict.LOAD_ERROR, "python_exit"),
        ("import os; os._exit(0)" + MODEL, Verdict.LOAD_ERROR, "python_exit"),
        ("import ctypes; ctypes.string_at(0)" + MODEL, Verdict.LOAD_ERROR, "python_exit"),
        ("def f(): f()\nf()" + MODEL, Verdict.LOAD_ERROR, "python_recursion"),
        ("x = 1", Verdict.LOAD_ERROR, "no_model"),
        ("", Verdict.LOAD_ERROR, "no_model"),
        (MODEL, Verdict.CHEATING, "no_own_kernel"),
        ("from torch.utils.cpp_extension import load_inline" + MODEL, Verdict.LOAD_ERROR, "no_call_caught"),
        (light("int f(int x) { return x; }", "nonsense=1"), Verdict.LOAD_ERROR, "python_arguments"),
        ("import socket; socket.socket()" + MODEL, Verdict.SANDBOX_VIOLATION, "sandbox_violation"),
        ("import subprocess; subprocess.run(['true'])" + MODEL, Verdict.SANDBOX_VIOLATION, "sandbox_violation"),
    ],
)  # fmt: skip
def test_files_that_end_before_a_build(capture, source, expected, code):
    assert verdict(capture(source)) == (expected, code)


def test_a_python_error_names_the_line(capture):
    found = capture("import torch\n\ndef helper():\n    return torch.nothing_here\n\nhelper()\n" + MODEL).diagnostics[0]
    assert (found.file, found.line, found.code) == ("candidate.py", 4, "python_attribute")
    assert found.source_line == "return torch.nothing_here"
    assert "nothing_here" in found.message


def test_a_file_that_hangs_is_stopped(nursery, builder, monkeypatch):
    monkeypatch.setattr("tools.build.capturing.CAPTURE_SECONDS", 1.0)
    captured = capture_calls(nursery, builder.cache, "while True: pass" + MODEL, properties=None, init_args=None)
    assert verdict(captured) == (Verdict.TIMEOUT, "import_timeout")


@pytest.mark.parametrize(
    "head",
    [
        "from torch.utils.cpp_extension import load_inline as build",
        "import torch.utils.cpp_extension as ce; build = ce.load_inline",
        "import functools, torch.utils.cpp_extension\nbuild = functools.partial(torch.utils.cpp_extension.load_inline)",
        "import importlib; build = getattr(importlib.import_module('torch.utils.cpp_extension'), 'load_inline')",
    ],
)
def test_calls_are_caught_under_any_name(capture, head):
    source = f"import torch\n{head}\nmodule = build('m', 'int f();', functions=['f'])\n{MODEL}"
    calls = capture(source).calls
    assert [(c.name, c.arguments) for c in calls] == [("m", {"cpp_sources": "int f();", "functions": ["f"]})]
    assert calls[0].line == source.splitlines().index("module = build('m', 'int f();', functions=['f'])") + 1


def test_builds_in_the_constructor_are_caught(capture):
    source = """
import torch
from torch.utils.cpp_extension import load_inline
class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.ext = load_inline(f"m{width}", "int f();", functions=["f"])
        self.packed = self.ext.f(torch.ones(width)).reshape(3, 5)
"""
    captured = capture(source, init_args=[7])
    assert [(c.name, c.where) for c in captured.calls] == [("m7", "construction")]
    assert capture(source).verdict is Verdict.LOAD_ERROR


def test_code_that_uses_the_library_at_import_goes_on(capture):
    source = """
import torch
from torch.utils.cpp_extension import load_inline
one = load_inline("one", "int f();", functions=["f"])
y = one.f(torch.ones(2))
two = load_inline("two", "int g();", functions=["g"])
z = two.g(3)[0].nothing()
class ModelNew(torch.nn.Module):
    pass
"""
    captured = capture(source)
    assert [c.name for c in captured.calls] == ["one", "two"]


def test_the_device_is_there_where_it_will_be(capture):
    source = (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        "if torch.cuda.is_available() and torch.cuda.get_device_capability() == (9, 0):\n"
        "    load_inline('m', '', 'int f();')\n" + MODEL
    )
    assert len(capture(source, device="cuda").calls) == 1
    assert capture(source, device="cpu").verdict is Verdict.LOAD_ERROR


def test_a_file_that_goes_on_to_use_the_gpu_has_said_enough(capture):
    call = "import torch\nfrom torch.utils.cpp_extension import load_inline\nload_inline('m', '', 'int f();')\n"
    for use in ("torch.zeros(1, device='cuda')", "torch.zeros(1).cuda()", "torch.cuda.Stream()"):
        captured = capture(call + use + MODEL, device="cuda")
        assert [c.name for c in captured.calls] == ["m"], use
    before = "import torch\nx = torch.zeros(1, device='cuda')\n" + call + MODEL
    assert verdict(capture(before, device="cuda")) == (Verdict.LOAD_ERROR, "python_uses_gpu")


def test_sources_may_be_made_from_the_device_s_properties(capture):
    source = (
        "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
        "p = torch.cuda.get_device_properties(0)\n"
        "load_inline('m', '', f'int f() {{ return {p.multi_processor_count * p.major}; }}', functions=['f'])\n"
    )
    assert capture(source + MODEL, device="cuda").calls[0].arguments["cuda_sources"].startswith("int f() { return ")


def test_too_much_text_is_refused(capture):
    source = f"from torch.utils.cpp_extension import load_inline\nload_inline('m', 'x' * {5 << 20})" + MODEL
    assert verdict(capture(source)) == (Verdict.LOAD_ERROR, "too_large")


def test_what_a_child_says_is_held_to_its_types(capture):
    """The candidate writes to the channel before the recorder does."""
    source = """
import os, struct, json, stat
for fd in range(3, 64):
    try:
        if stat.S_ISSOCK(os.fstat(fd).st_mode):
            forged = {"calls": [{"kind": "evil", "name": "../../x"}], "error": None, "has_model": True}
            body = json.dumps(forged).encode()
            os.write(fd, struct.pack("!I", len(body)) + body)
    except OSError:
        pass
""" + MODEL  # fmt: skip
    captured = capture(source)
    assert captured.verdict in (Verdict.LOAD_ERROR, Verdict.SANDBOX_VIOLATION)
    assert captured.calls == []
