"""Flags: what is passed on, what gives way, what is refused."""

from __future__ import annotations

import pytest

from tools.build.flags import check_flags, split_flags


def check(*flags, tool="extra_cuda_cflags"):
    return check_flags(list(flags), tool=tool, arch="sm_90a", std="-std=c++20")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (None, []),
        ([""], []),
        ("-O3 -Wall", ["-O3", "-Wall"]),
        (["-O3 --use_fast_math", "-DX=1"], ["-O3", "--use_fast_math", "-DX=1"]),
        (("-DNAME='a b'",), ["-DNAME=a b"]),
        (['-DBROKEN="'], ['-DBROKEN="']),
    ],
)
def test_flags_are_split_as_a_shell_would(given, words):
    assert split_flags(given) == words


@pytest.mark.parametrize(
    "flags",
    [
        ["-O3"],
        ["-Xcompiler", "-Wall,-O2"],
        ["-Xcompiler=-fopenmp"],
        ["-lineinfo", "-maxrregcount=64"],
        ["-Xptxas", "-O3,-v"],
        ["-std=c++20"],
        ["-I/opt/include", "-L", "/opt/lib", "-lcublas", "-Wl,-rpath,/opt/lib"],
        ["--expt-extended-lambda", "-U__CUDA_NO_HALF_OPERATORS__"],
        ["-march=native", "-fopenmp"],
    ],
)
def test_ordinary_flags_pass_unremarked(flags):
    result = check(*flags)
    assert (result.flags, result.notes, result.findings) == (flags, [], [])


@pytest.mark.parametrize(
    "flags",
    [
        ["-arch=sm_70"],
        ["-arch", "sm_80"],
        ["-gencode=arch=compute_80,code=sm_80"],
        ["-gencode", "arch=compute_80,code=sm_80"],
        ["--generate-code=arch=compute_100a,code=sm_100a"],
        ["-rdc=true"],
        ["-dc"],
        ["-std=c++14"],
        ["--compiler-bindir", "/tmp/evil"],
        ["-ccbin=/tmp/evil"],
        ["-B/tmp/evil"],
        ["-include", "/etc/passwd"],
        ["@/tmp/flags"],
        ["-optf", "/tmp/flags"],
        ["-o", "/tmp/elsewhere.o"],
        ["-E"],
        ["--keep"],
        ["-Xlinker", "-T,/tmp/script"],
        ["-Wl,@/tmp/flags"],
        ["-Xcompiler", "-include,/etc/passwd"],
    ],
)
def test_flags_that_fight_ours_are_dropped_with_a_note(flags):
    result = check("-O3", *flags)
    assert result.flags == ["-O3"]
    assert len(result.notes) == 1 and " ".join(flags) in result.notes[0]
    assert result.findings == []


@pytest.mark.parametrize("flag", ["-arch=sm_90a", "-arch=native", "-gencode=arch=compute_90a,code=sm_90a"])
def test_the_target_s_own_architecture_needs_no_note(flag):
    result = check(flag)
    assert (result.flags, result.notes) == ([], [])


@pytest.mark.parametrize("flag", ["--use_fast_math", "-use_fast_math", "-ffast-math", "-Ofast", "--ftz=true"])
def test_loose_arithmetic_is_kept_and_reported(flag):
    result = check(flag)
    assert result.flags == [flag]
    assert "trades accuracy for speed" in result.notes[0]


@pytest.mark.parametrize(
    "flags",
    [
        ["`id`"],
        ["-DX=$(id)"],
        ["-fplugin=/tmp/x.so"],
        ["-wrapper", "sh,-c,id"],
        ["-Xcompiler", "-fplugin=/tmp/x.so"],
        ["-Xcompiler=-wrapper,id"],
        ["-Wl,-plugin,/tmp/x.so"],
        ["-specs=/tmp/specs"],
        ["-run"],
    ],
)
def test_flags_that_would_run_something_are_refused(flags):
    result = check(*flags)
    assert result.flags == []
    assert [f.code for f in result.findings] == ["flag_runs_command"]
    assert "remove it" in result.findings[0].summary
