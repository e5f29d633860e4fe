"""compute-sanitizer's words, newer and older, back to the lines of the model's source."""

from __future__ import annotations

from pathlib import Path

import pytest
from memcheck_builds import KERNELS, RECORDED, SOURCE, build_of, module

from tools.memcheck.checker import device_command
from tools.memcheck.device_report import parse, unread
from tools.memcheck.records import Check, MemoryFinding
from tools.probe.places import Places


@pytest.fixture
def places(tmp_path: Path) -> Places:
    return Places(build_of(module(tmp_path, "rows", SOURCE)))


def read(check: Check, places: Places, name: str | None = None) -> tuple[list[MemoryFinding], int]:
    return parse((RECORDED / f"{name or check}.txt").read_text(), check, places, KERNELS)


def test_memcheck(places: Places):
    (write, aligned), elsewhere = read("memcheck", places)
    assert (write.kind, write.file, write.line, write.count) == ("global_write", "cuda_sources", 10, 2)
    assert write.source_line == "y[blockIdx.x + 1] = total;"
    assert write.function == "row_sum(const float *, float *, int)"
    assert "1 bytes after the nearest allocation, of 16,384 bytes" in write.detail
    # A helper in a header is told at the line of the model's that calls it.
    assert (aligned.kind, aligned.line) == ("misaligned", 6)
    # What a library's kernel does, and what follows from an error, is no finding.
    assert elsewhere == 1


def test_racecheck_names_both_lines(places: Places):
    (race, warning), elsewhere = read("racecheck", places)
    assert (race.kind, race.line, race.other_line, race.count) == ("race", 5, 9, 512)
    assert race.other_source_line == "for (int i = 0; i < 8; ++i) total += part[i];"
    assert (warning.kind, warning.line, warning.other_line) == ("race_warning", 5, 5)
    assert elsewhere == 0


def test_synccheck_counts_one_barrier_once(places: Places):
    (barrier,), _ = read("synccheck", places)
    assert (barrier.kind, barrier.line, barrier.count) == ("barrier", 6, 2)
    assert barrier.detail.startswith("Divergent thread(s) in block")


def test_older_words_and_kernels_without_lines(places: Places):
    (located, bare), elsewhere = read("initcheck", places, "initcheck_older")
    assert (located.kind, located.line) == ("uninitialised_read", 4)
    assert (bare.line, bare.function) == (None, "row_sum(const float *, float *, int)")
    assert elsewhere == 0


def test_the_library_decides_where_two_modules_have_files_of_one_name(tmp_path: Path):
    first, second = module(tmp_path, "one", SOURCE), module(tmp_path, "two", "int first;\n" + SOURCE)
    places = Places(build_of(first, second))
    found = places.locate("./cuda.cu", 16, second.library)
    assert (
        found is not None and found.line == 10 and found.source_line == "for (int i = 0; i < 8; ++i) total += part[i];"
    )
    assert places.locate("cuda.cu", 3) is None  # a line of ours
    assert places.locate("cuda.cu", 999) is None
    assert places.locate("other.cu", 16) is None
    assert Places(build_of()).locate("cuda.cu", 16) is None


def test_each_tool_is_a_prefix_to_the_program():
    command = device_command(Path("/opt/compute-sanitizer"), "racecheck")
    assert command[:3] == ["/opt/compute-sanitizer", "--tool", "racecheck"]


def test_a_report_that_says_nothing_we_know_is_not_clean():
    assert unread("========= COMPUTE-SANITIZER\n========= ERROR SUMMARY: 0 errors\n") == ""
    assert unread("========= RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)\n") == ""
    assert "no summary" in unread("========= Error: No attachable process found. compute-sanitizer timed-out.\n")
    later = "========= COMPUTE-SANITIZER\n========= A new kind of error\n=========\n========= ERROR SUMMARY: 3 errors\n"
    assert unread(later) == "it tells of something else: A new kind of error"
    call = "========= Program hit CUDA_ERROR_NOT_FOUND (error 500) on CUDA API call to cuGetProcAddress_v2.\n"
    frames = "=========     Saved host backtrace\n=========\n"
    assert unread(f"========= COMPUTE-SANITIZER\n{call}{frames}{call}{frames}========= ERROR SUMMARY: 2 errors\n") == ""
