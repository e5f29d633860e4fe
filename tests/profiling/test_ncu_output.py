"""Nsight Compute's output as version 2025.3 writes it, with what later and other versions may put in between."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools.probe.records import Trouble
from tools.profiling import ncu
from tools.profiling.metrics import BESIDE_SECTIONS
from tools.profiling.ncu_csv import parse
from tools.profiling.records import KernelCounters

RECORDED = Path(__file__).with_name("recorded")
RAW = (RECORDED / "ncu_raw.csv").read_text()
DETAILS = (RECORDED / "ncu_details.csv").read_text()
DENIED = """==PROF== Connected to process 99 (/usr/bin/python3.12)
==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on the \
target device 0.
==PROF== Disconnected from process 99
==WARNING== No kernels were profiled.
"""
IN_USE = """==PROF== Connected to process 99 (/usr/bin/python3.12)
==ERROR== An error was reported by the driver: Profiling failed because a driver resource was unavailable. Ensure that \
no other tool (like DCGM) is concurrently collecting profiling data.
==WARNING== No kernels were profiled.
"""


@pytest.fixture
def launches() -> list[KernelCounters]:
    return parse(RAW + DETAILS)


def test_two_pages_of_one_report_become_one_record_for_each_launch(launches: list[KernelCounters]):
    assert [k.name for k in launches] == [
        "void tile_transpose<32>(const float *, float *, int)",
        "scale_rows(const float *, float *, int, long)",
    ]
    assert (launches[0].grid, launches[0].block) == ("(128, 128, 1)", "(32, 8, 1)")


def test_figures_come_in_our_units_and_without_separators(launches: list[KernelCounters]):
    metrics = launches[0].metrics
    assert metrics["duration_us"] == pytest.approx(57.088)
    assert metrics["dram_read"] == 67125248
    assert metrics["static_shared"] == 4096
    assert metrics["load_sectors_per_request"] == 4
    assert metrics["waves"] == pytest.approx(15.52)
    assert metrics["tensor_pipe"] == 0
    assert launches[1].metrics["load_sector_use"] == pytest.approx(12.5)


def test_larger_units_are_brought_to_the_same_base():
    lines = RAW.replace('"ns"', '"ms"').replace('"byte"', '"Mbyte"')
    metrics = parse(lines)[0].metrics
    assert metrics["duration_us"] == pytest.approx(57.088e6)
    assert metrics["dram_written"] == pytest.approx(66871040e6)


def test_the_longest_waits_come_first_and_what_is_not_available_is_left_out(launches: list[KernelCounters]):
    assert list(launches[0].stalls) == ["mio_throttle", "long_scoreboard", "short_scoreboard", "barrier", "wait"]
    assert launches[0].issue_latency == pytest.approx(61.24)
    assert "gmma" not in launches[1].stalls
    assert "selected" not in launches[1].stalls


def test_the_limiter_of_occupancy_is_the_least_limit(launches: list[KernelCounters]):
    assert launches[0].occupancy_limited_by == "warps"
    assert parse(RAW.replace('"12","32","8"', '"8","32","8"'))[0].occupancy_limited_by == "registers and warps"


def test_rules_come_with_their_gain_first_without_links_and_without_remarks(launches: list[KernelCounters]):
    first, second, third = launches[0].rules
    assert (first.name, first.speedup) == ("UncoalescedSharedAccess", pytest.approx(68.36))
    assert "The CUDA Best Practices Guide has an example" in first.text
    assert "https" not in first.text
    assert '"MIO throttle"' in second.text
    assert "Look at the Memory Workload Analysis section" not in third.text
    assert "Look at the MemoryWorkloadAnalysis_Tables section" in third.text
    assert third.speedup is None
    assert [r.name for r in launches[1].rules] == ["SMBusyGrid"]


def test_noise_and_unknown_rows_cost_nothing():
    noisy = "printed by the program, with a comma\n" + DETAILS + '\n"9","too","short"\n==PROF== the end\n' + RAW
    names = [k.name for k in parse(noisy)]
    assert names[:2] == [k.name for k in parse(RAW + DETAILS)]
    assert [len(k.rules) for k in parse(noisy)][:2] == [3, 1]
    assert parse("") == []
    assert parse("==ERROR== nothing at all\n") == []


def test_a_cut_line_loses_its_own_launch_and_no_other():
    whole, cut = RAW.splitlines()[:-1], RAW.splitlines()[-1][:200]
    found = parse("\n".join([*whole, cut]))
    assert found[0].metrics["sm"] == pytest.approx(22.05)
    assert "sm" not in found[1].metrics


@pytest.mark.parametrize(
    ("output", "trouble", "code", "said"),
    [
        (DENIED, None, "no_permission", "ERR_NVGPUCTRPERM"),
        (IN_USE, None, "in_use", ""),
        ("", Trouble(ended="timeout"), "timeout", ""),
        ("==WARNING== No kernels were profiled.\n", None, "no_kernel", ""),
        ("==ERROR== The application returned an error code (11).\n", None, "failed", "error code (11)"),
        ("sh: 1: something else\n", None, "failed", "something else"),
    ],
)
def test_why_there_is_no_report_is_told_by_a_code_and_its_own_words(
    output: str, trouble: Trouble | None, code: str, said: str
):
    found = ncu.failure(output, trouble)
    assert found.code == code
    assert said in found.said


def test_only_the_candidates_kernels_are_measured_in_the_marked_call():
    kernels = ["void ns::tile<32, float>(float const*)", "rows(float*, int)", "void ns::tile<64, float>(float const*)"]
    command = ncu.profile_command(Path("/opt/ncu"), kernels, Path("/tmp/out.ncu-rep"))
    assert command[command.index("--kernel-name") + 1] == "regex:^(.*::)?(rows|tile)$"
    assert command[command.index("--profile-from-start") + 1] == "off"
    assert command[command.index("--clock-control") + 1] == "none"
    assert command[command.index("--metrics") + 1].split(",") == list(BESIDE_SECTIONS)
    assert command.count("--section") == 8


def test_a_program_is_found_on_the_path_where_no_toolkit_has_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "ncu").write_text("#!/bin/sh\n")
    (tmp_path / "ncu").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert ncu.find_ncu(None) == tmp_path / "ncu"
    assert ncu.find_ncu(tmp_path / "nowhere") == tmp_path / "ncu"
