"""Addresses to functions, on a library built here: local functions too, which the dynamic linker does not know."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.profiling.lines import parse
from tools.profiling.symbols import Symbols, mapped_files

SOURCE = """
namespace { __attribute__((noinline)) long inner(long n) { volatile long s = 0; while (n) s += n--; return s; } }
extern "C" long outer(long n) { return inner(n) + 1; }
extern "C" void *where(int which) { return which ? (void *)&inner : (void *)&outer; }
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    compiler = shutil.which("c++")
    if compiler is None:
        pytest.skip("needs a C++ compiler")
    folder = tmp_path_factory.mktemp("symbols")
    (folder / "a.cpp").write_text(SOURCE)
    subprocess.run([compiler, "-O2", "-shared", "-fPIC", "a.cpp", "-o", "a.so"], cwd=folder, check=True)
    return folder / "a.so"


def named(library: Path, which: int) -> str | None:
    loaded = ctypes.CDLL(str(library))
    loaded.where.restype = ctypes.c_void_p
    address = int(loaded.where(which)) + 2
    place = next(m for m in mapped_files() if m.start <= address < m.end)
    assert place.path == str(library)
    return Symbols(place.path).name(address - place.start + place.offset)


def test_exported_and_local_functions_are_found(library: Path):
    assert named(library, 0) == "outer"
    assert named(library, 1) == "(anonymous namespace)::inner(long)"


def test_a_stripped_library_knows_its_exported_functions_only(library: Path):
    strip = shutil.which("strip")
    if strip is None:
        pytest.skip("needs strip")
    stripped = library.with_name("stripped.so")
    subprocess.run([strip, "-o", str(stripped), str(library)], check=True)
    assert named(stripped, 0) == "outer"
    assert named(stripped, 1) is None


@pytest.mark.parametrize("content", [b"", b"\x7fELF\x02\x01", b"#!/bin/sh\n", b"\x7fELF\x02\x01" + b"\xff" * 4000])
def test_a_file_that_is_no_library_has_no_functions(tmp_path: Path, content: bytes):
    path = tmp_path / "odd"
    path.write_bytes(content)
    assert Symbols(str(path)).name(64) is None
    assert Symbols(str(tmp_path / "missing")).name(0) is None


def test_lines_come_with_those_that_they_were_inlined_into():
    output = """0x0000000000001139
/opt/include/helper.h:33
/tmp/build/main.cpp:12 (discriminator 3)
0x0000000000001140
??:0
??:?
0x0000000000001150
./main.cpp:7
"""
    assert parse(output) == {
        0x1139: [("/opt/include/helper.h", 33), ("/tmp/build/main.cpp", 12)],
        0x1140: [("??", 0)],
        0x1150: [("./main.cpp", 7)],
    }
    assert parse("addr2line: 'gone.so': No such file\n") == {}
