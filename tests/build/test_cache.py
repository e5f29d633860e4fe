"""Builds are kept by content, and a build that was killed leaves nothing in the way."""

from __future__ import annotations

import os

import pytest

from tools.build.cache import BuildCache, build_key
from tools.build.calls import BuildCall, CompileOutcome, SourcePart, Unit
from tools.build.toolchain import find_toolchain

OUTCOME = CompileOutcome(ok=True, route="stock", library="m.so", functions=["f"])


def call(**changes) -> BuildCall:
    unit = Unit(filename="main.cpp", language="cpp", parts=[SourcePart(label="cpp_sources", text="int f();")])
    return BuildCall(index=0, name="m", call="fingerprint", units=[unit]).model_copy(update=changes)


def key(built: BuildCall, **changes) -> str:
    toolchain = find_toolchain(cuda=False).model_copy(update=changes)
    return build_key(built, toolchain, "sm_90a", "stock")


def test_key_follows_what_decides_the_outcome():
    base = key(call())
    assert key(call(index=3, call="another", added=["a note"])) == base
    different = [
        key(call(name="n")),
        key(call(cflags=["-O3"])),
        key(call(ldflags=["-lm"])),
        key(call(), torch_version="0.0"),
        key(call(), cxx_version="0.0"),
        build_key(call(), find_toolchain(cuda=False), "sm_90a", "fast"),
    ]
    assert len({base, *different}) == len(different) + 1
    # The CUDA target only counts where there is CUDA.
    toolchain = find_toolchain(cuda=False)
    assert build_key(call(), toolchain, "sm_80", "stock") == base
    assert build_key(call(with_cuda=True), toolchain, "sm_80", "s") != build_key(
        call(with_cuda=True), toolchain, "sm_90", "s"
    )


def keep(cache: BuildCache, name: str, outcome: CompileOutcome = OUTCOME, content: bytes = b"lib"):
    with cache.workspace() as folder:
        (folder / "m.so").write_bytes(content)
        return cache.keep(name, folder, outcome)


def test_kept_builds_are_found_again(tmp_path):
    cache = BuildCache(tmp_path)
    assert cache.find("aa11") is None
    place = keep(cache, "aa11")
    assert cache.find("aa11") == OUTCOME
    assert BuildCache(tmp_path).find("aa11") == OUTCOME
    assert (place / "m.so").read_bytes() == b"lib"
    assert list((tmp_path / "building").iterdir()) == []


def test_the_first_of_two_stays(tmp_path):
    cache = BuildCache(tmp_path)
    keep(cache, "aa11", content=b"first")
    keep(cache, "aa11", content=b"second")
    assert (cache.place("aa11") / "m.so").read_bytes() == b"first"


@pytest.mark.parametrize("damage", ["no record", "torn record", "no library"])
def test_a_damaged_build_is_made_anew(tmp_path, damage):
    cache = BuildCache(tmp_path)
    place = keep(cache, "aa11")
    if damage == "no record":
        (place / "build.json").unlink()
    elif damage == "torn record":
        (place / "build.json").write_text('{"ok": tr')
    else:
        (place / "m.so").unlink()
    assert cache.find("aa11") is None
    keep(cache, "aa11", content=b"again")
    assert cache.find("aa11") == OUTCOME
    assert (place / "m.so").read_bytes() == b"again"


def test_what_a_killed_process_left_goes_after_a_day(tmp_path):
    old, new = tmp_path / "building" / "old", tmp_path / "building" / "new"
    for folder in (old, new):
        folder.mkdir(parents=True)
    os.utime(old, (1.0, 1.0))
    BuildCache(tmp_path)
    assert not old.exists() and new.exists()


def test_a_workspace_left_by_a_killed_process_is_in_nobodys_way(tmp_path):
    cache = BuildCache(tmp_path)
    left = tmp_path / "building" / "left"
    left.mkdir(parents=True)
    (left / "lock").touch()
    keep(cache, "aa11")
    assert cache.find("aa11") == OUTCOME
