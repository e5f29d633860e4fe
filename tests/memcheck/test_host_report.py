"""What gcc's sanitizers print, where a real run does not reach: frames of headers and libraries, and odd lines."""

from __future__ import annotations

from pathlib import Path

from memcheck_builds import build_of, module

from tools.memcheck.host_report import parse
from tools.probe.places import Places


def places_of(tmp_path: Path) -> tuple[Places, str]:
    made = module(tmp_path, "rows", "int a;\nint b;\nint c;")
    return Places(build_of(made)), made.library


def test_an_access_in_a_header_is_told_at_the_line_that_calls_it(tmp_path: Path):
    places, library = places_of(tmp_path)
    report = f"""printed by the candidate
==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x61 at pc 0x7f bp 0x7f sp 0x7f
WRITE of size 4 at 0x61 thread T1
    #0 0x7f01 in at::accessor::operator[](long) at /opt/include/accessor.h:33 from {library}
    #1 0x7f02 in f(at::kfast_api::Tensor) at ./cuda.cu:8 from {library}
    #2 0x7f03 in ffi_call at <null>:0 from /lib/libffi.so.8

0x61 is located 0 bytes to the right of 400-byte region [0x60,0x61)
allocated by thread T0 here:
    #0 0x7f04 in posix_memalign at ./cuda.cu:7 from {library}

SUMMARY: AddressSanitizer: heap-buffer-overflow
"""
    (finding,), elsewhere = parse(report, places)
    assert (finding.kind, finding.file, finding.line) == ("out_of_bounds_write", "cuda_sources", 2)
    assert finding.function == "f(at::Tensor)"
    assert finding.detail == "heap-buffer-overflow: write of 4 bytes, 0 bytes to the right of 400-byte region"
    assert elsewhere == 0


def test_what_happens_in_other_code_is_counted_and_not_shown(tmp_path: Path):
    places, library = places_of(tmp_path)
    report = f"""==7==ERROR: AddressSanitizer: heap-buffer-overflow on address 0x61 at pc 0x7f bp 0x7f sp 0x7f
READ of size 4 at 0x61 thread T0
    #0 0x7f01 in gemm at <null>:0 from /opt/libtorch_cpu.so

/opt/torch/include/c10/util.h:40:3: runtime error: signed integer overflow: 1 + 2147483647 cannot be represented
./cuda.cu:9:5: runtime error: division by zero
    #0 0x7f01 in g() at ./cuda.cu:9 from {library}
"""
    (finding,), elsewhere = parse(report, places)
    assert (finding.kind, finding.line, finding.source_line) == ("division_by_zero", 3, "int c;")
    assert elsewhere == 2


def test_nothing_is_made_of_what_a_candidate_prints(tmp_path: Path):
    places, _ = places_of(tmp_path)
    assert parse("runtime error: none\nERROR: AddressSanitizer: none\n    #0 0x1 in f at a:1 from b\n", places) == (
        [],
        0,
    )
