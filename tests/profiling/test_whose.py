"""A kernel that calls expf or pow spends its time in the maths library, and is profiled all the same."""

from __future__ import annotations

from typing import get_args

import pytest

from tools.profiling.records import Whose
from tools.profiling.sampled import whose

OWN = "/cache/ab/kernel.so"


@pytest.mark.parametrize("mine", [True, False])
@pytest.mark.parametrize(
    "path", [OWN, "/lib/libm.so.6", "/lib/libmvec.so.1", "/torch/lib/libtorch_cpu.so", "/lib/libc.so.6", ""]
)
def test_every_file_is_of_a_kind_that_a_profile_knows(path: str, mine: bool):
    assert whose(path, [OWN], mine=mine) in get_args(Whose)


def test_the_maths_library_works_for_who_is_seen_at_work():
    assert whose("/lib/libm.so.6", [OWN], mine=True) == "own"
    assert whose("/lib/libm.so.6", [OWN], mine=False) == "other"
