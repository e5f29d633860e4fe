"""Whose code samples lie in, by the files that they lie in."""

from __future__ import annotations

from tools.worker.profile import kinds_of

OWN = "/cache/ab/kernel.so"
ELSEWHERE = ["/torch/lib/libtorch_cpu.so", "/lib/libc.so.6", "/torch/lib/libgomp.so.1", ""]


def test_the_candidates_binary_a_library_and_what_says_nothing():
    assert kinds_of([OWN, *ELSEWHERE], [OWN]) == ["own", "library", "other", "other", "other"]


def test_the_maths_library_works_for_a_candidate_that_is_seen_at_work():
    maths = ["/lib/libm.so.6", "/lib/libmvec.so.1"]
    assert kinds_of([*maths, OWN], [OWN]) == ["own", "own", "own"]
    assert kinds_of([*maths, *ELSEWHERE], [OWN]) == ["other", "other", "library", "other", "other", "other"]
