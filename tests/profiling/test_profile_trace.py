"""The device's events of a profiler's trace, as torch writes them, summed to one forward."""

from __future__ import annotations

from typing import Any

import pytest

from tools.profiling.traced import rows_of


def event(name: str, us: float, cat: str = "kernel", **args: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "dur": us, "args": args}


def test_launches_of_one_name_are_summed_and_divided_by_the_repeats():
    shape = {"grid": [64, 2, 1], "block": [256, 1, 1], "registers per thread": 40, "shared memory": 4096}
    events = [
        event("mine(float*)", 30.0, **shape, **{"est. achieved occupancy %": 75}),
        event("mine(float*)", 50.0, **shape),
        event("Memset (Device)", 2.0, "gpu_memset"),
        event("cudaLaunchKernel", 900.0, "cuda_runtime"),
        {"ph": "M", "name": "process_name"},
    ]
    first, second = rows_of(events, repeats=2)
    assert (first["name"], first["calls"], first["us"]) == ("mine(float*)", 1.0, pytest.approx(40.0))
    assert (first["grid"], first["block"]) == ([64, 2, 1], [256, 1, 1])
    assert (first["registers"], first["shared"], first["occupancy"]) == (40, 4096, 75)
    assert (second["name"], second["calls"]) == ("Memset (Device)", 0.5)
    assert "grid" not in second
    assert rows_of([], repeats=1) == []
