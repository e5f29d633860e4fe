"""A profile in words, for each thing that it may say."""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import pytest

from prompts import render
from tools.probe.records import Trouble
from tools.profiling.limits import of_counters
from tools.profiling.ncu_csv import parse
from tools.profiling.records import KernelRun, Limit, LimitCode, LineShare, Profile, SymbolShare, Unavailable
from tools.reports import ProfileReport

RECORDED = Path(__file__).parents[1] / "profiling" / "recorded"
LAUNCHES = parse((RECORDED / "ncu_raw.csv").read_text() + (RECORDED / "ncu_details.csv").read_text())
# Every figure that any rule may hand over, so that each sentence finds its own.
_NAMES = """library other busy_us call_us launches cores_used cores share bandwidth blocks multiprocessors spilled
conflicts tensor_pipe l2 l1 sm cycles occupancy of_c asleep"""
FIGURES: dict[str, float | str] = dict.fromkeys(_NAMES.split(), 0.5)
FIGURES["stall"] = "mio_throttle"


def shown(**fields: Any) -> str:
    profile = Profile(**({"method": "ncu", "call_us": 123.0, "seconds": 2.0, "most_seconds": 90.0} | fields))
    return render("profile", report=ProfileReport(kernel="k2", profile=profile))


def test_counters_and_the_profilers_advice_are_told():
    run = KernelRun(
        name="tile_transpose<32>", own=True, calls=1, us=57.0, share=0.93, grid=[128, 128, 1], block=[32, 8, 1],
        registers=20, shared=4096,
    )  # fmt: skip
    text = shown(kernels=[run], counters=LAUNCHES, limit=of_counters(LAUNCHES[0]), left_out=3)
    for expected in (
        "123 µs for one warm call",
        "| `tile_transpose<32>` (yours) | 93% | 57 µs | 1 | 128×128×1 | 32×8×1 | 20 | 4 KiB |",
        "3 more",
        "throughput, of the peak: multiprocessors 22.1%, DRAM 48.9%, L2 39.2%, L1 and shared memory 74.3%",
        "tensor cores 0%",
        "occupancy is limited by warps",
        "DRAM traffic: read 67.1 MB",
        "sectors of 32 B per load 4, of their bytes used 100%",
        "bank conflicts at loads 1.63e+07",
        "cycles per instruction (of 61.2): mio_throttle 27, long_scoreboard 18.9",
        "Nsight Compute, UncoalescedSharedAccess (its estimate: 68.4%): This kernel has uncoalesced",
        "bank conflicts in shared memory: 93.9%",
        "Pad the row of the tile",
        "at most 90 s",
    ):
        assert expected in text, expected


def test_a_launch_of_which_nothing_is_known_leaves_no_hole():
    bare = LAUNCHES[0].model_copy(update={"metrics": {}, "stalls": {}, "rules": [], "occupancy_limited_by": None})
    text = shown(counters=[bare])
    assert "Counters of" in text
    assert "- " not in text.split("Counters of", 1)[1]


def test_samples_are_told_with_whose_code_it_is():
    symbols = [
        SymbolShare(symbol="chain(at::Tensor) [clone ._omp_fn.0]", file="ext.so", whose="own", share=0.8),
        SymbolShare(symbol=None, file="libtorch_cpu.so", whose="library", share=0.2),
    ]
    lines = [LineShare(file="cpp_sources", line=12, source_line="y[i] = a || b;", share=0.55)]
    text = shown(method="samples", symbols=symbols, lines=lines, samples=1234, cores=2, cores_used=1.97)
    assert "| 55% | cpp_sources:12 | `y[i] = a // b;` |" in text
    assert "1234 samples" in text
    assert "| 80% | `chain(at::Tensor) [clone ._omp_fn.0]` | ext.so (yours) |" in text
    assert "| 20% | `no symbol` | libtorch_cpu.so (library) |" in text
    assert "1.97 of 2 cores busy" in text


@pytest.mark.parametrize("code", get_args(LimitCode))
def test_every_limit_has_a_sentence_of_its_own(code: LimitCode):
    text = shown(limit=Limit(code=code, subject="k(float*)", observed=FIGURES))
    assert "**What limits it, in `k(float*)`:**" in text
    assert ("nothing stands out" in text) == (code == "not_told")


@pytest.mark.parametrize("code", get_args(Unavailable.model_fields["code"].annotation))
def test_why_there_are_no_counters_is_said_in_one_line(code: str):
    text = shown(method="cupti", unavailable=Unavailable(code=code, said="in its own words"))
    line = next(line for line in text.splitlines() if "No counters" in line)
    assert "in its own words" in line
    assert "CUPTI" in line


@pytest.mark.parametrize(
    ("trouble", "said"),
    [
        (Trouble(ended="raised", type="NameError", message="no y", line=7, source_line="return y"), "line 7"),
        (Trouble(ended="crashed", signal=11), "segmentation fault"),
        (Trouble(ended="crashed", signal=6), "died of abort()"),
        (Trouble(ended="crashed", signal=35), "signal 35"),
        (Trouble(ended="malformed"), "in no form that our own code sends"),
        (Trouble(ended="timeout"), "time limit"),
        (Trouble(ended="out_of_memory"), "memory"),
        (Trouble(ended="exited", refused=["program attempt: execve"], output="bye"), "program attempt"),
    ],
)
def test_a_candidate_that_did_not_finish_is_told_with_its_end(trouble: Trouble, said: str):
    text = shown(call_us=None, trouble=trouble)
    assert "could not be profiled" in text
    assert said in text
