"""What is said to limit a candidate, from figures of which each tells of one thing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tools.profiling.limits import of_counters, of_samples, of_trace
from tools.profiling.ncu_csv import parse
from tools.profiling.records import KernelCounters, KernelRun, SymbolShare
from tools.types import KernelResources

RECORDED = Path(__file__).with_name("recorded")
QUIET = {"sm": 20.0, "dram": 20.0, "l2": 20.0, "l1": 20.0, "waves": 8.0, "theoretical_occupancy": 100.0}


def counters(stalls: dict[str, float] | None = None, **metrics: float) -> KernelCounters:
    return KernelCounters(name="k(float*)", metrics={**QUIET, **metrics}, stalls=stalls or {})


@pytest.mark.parametrize(
    ("code", "kernel"),
    [
        ("small_grid", counters(waves=0.4, dram=90.0)),
        ("local_memory", counters(sectors=1000.0, local_load_sectors=150.0, dram=80.0)),
        ("uncoalesced", counters(load_sector_use=25.0, l1=70.0)),
        ("uncoalesced", counters(store_sector_use=12.5, dram=85.0)),
        ("bank_conflicts", counters(shared_wavefronts=1000.0, bank_conflicts_load=500.0, l1=80.0)),
        ("tensor_cores", counters(tensor_pipe=75.0, sm=75.0)),
        ("memory_bandwidth", counters(dram=88.0, l2=40.0)),
        ("l2_bandwidth", counters(l2=82.0, dram=30.0)),
        ("l1_throughput", counters(l1=82.0)),
        ("arithmetic", counters(sm=90.0)),
        ("low_occupancy", counters({"long_scoreboard": 9.0}, theoretical_occupancy=12.5)),
        ("waits_at_barriers", counters({"barrier": 9.0}, theoretical_occupancy=12.5)),
        ("waits_for_global_memory", counters({"long_scoreboard": 9.0, "wait": 2.0})),
        ("waits_for_shared_memory", counters({"mio_throttle": 9.0})),
        ("dependent_instructions", counters({"not_selected": 5.0, "wait": 3.0})),
        ("not_told", counters({"not_selected": 5.0})),
        ("not_told", KernelCounters(name="nothing known")),
    ],
)
def test_counters_name_what_stands_out(code: str, kernel: KernelCounters):
    assert of_counters(kernel).code == code


def test_well_used_sectors_and_few_conflicts_are_no_reason():
    kernel = counters(load_sector_use=80.0, shared_wavefronts=1000.0, bank_conflicts_load=50.0, l1=45.0, dram=75.0)
    assert of_counters(kernel).code == "memory_bandwidth"
    # Scattered accesses of a kernel that hardly touches memory are not what it waits for.
    assert of_counters(counters({"wait": 4.0}, load_sector_use=12.5)).code == "dependent_instructions"


def test_the_recorded_launches():
    transpose, rows = parse((RECORDED / "ncu_raw.csv").read_text())
    limit = of_counters(transpose)
    assert (limit.code, limit.observed["conflicts"]) == ("bank_conflicts", pytest.approx(0.939, abs=1e-3))
    assert of_counters(rows).code == "small_grid"


def run(name: str = "k", own: bool = True, us: float = 90.0, share: float = 0.9, **more: Any) -> KernelRun:
    return KernelRun(name=name, own=own, calls=1.0, us=us, share=share, **more)


def built(spilled: int = 0) -> list[KernelResources]:
    return [KernelResources(name="k", mangled="k", arch="sm_90a", registers=64, spill_loads=spilled)]


def traced(*kernels: KernelRun, spilled: int = 0, call_us: float = 100.0, share: float | None = None) -> str:
    limit = of_trace(kernels, built(spilled), call_us=call_us, multiprocessors=132, bandwidth_share=share)
    return limit.code if limit else "none"


def test_a_trace_names_what_launch_shapes_and_the_compiler_tell():
    wide = {"grid": [1000, 1, 1], "occupancy": 0.9}
    assert traced() == "none"
    assert traced(run("gemm", own=False, share=0.8, us=80.0), run(share=0.2, us=20.0)) == "library_time"
    assert traced(run("gemm", own=False, share=1.0)) == "library_time"
    assert traced(run(share=1.0, **wide), call_us=1000.0) == "host_time"
    assert traced(run(share=1.0, grid=[66, 1, 1])) == "small_grid"
    assert traced(run(share=1.0, **wide), spilled=64) == "local_memory"
    assert traced(run(share=1.0, **wide), share=0.8) == "memory_bandwidth"
    assert traced(run(share=1.0, grid=[1000, 1, 1], occupancy=0.12)) == "low_occupancy"
    assert traced(run(share=1.0, **wide)) == "not_told"


def sampled(own: float, library: float, other: float, *, cores: float = 2.0, bandwidth: float | None = None) -> str:
    rows = [
        SymbolShare(symbol="mine()", file="ext.so", whose="own", share=own),
        SymbolShare(symbol=None, file="libtorch_cpu.so", whose="library", share=library),
        SymbolShare(symbol="PyEval", file="python", whose="other", share=other),
    ]
    limit = of_samples(rows, cores_used=cores, cores=2, bandwidth_share=bandwidth)
    assert limit is not None
    return limit.code


def test_samples_name_whose_code_it_is_then_memory_then_cores():
    assert sampled(0.1, 0.8, 0.1) == "library_time"
    assert sampled(0.2, 0.1, 0.7) == "overhead"
    assert sampled(0.9, 0.0, 0.1, cores=1.0, bandwidth=0.8) == "memory_bandwidth"
    assert sampled(0.9, 0.0, 0.1, cores=1.0, bandwidth=0.2) == "idle_cores"
    assert sampled(0.9, 0.0, 0.1, bandwidth=0.2) == "hot_function"
    rows = [
        SymbolShare(symbol="mine()", file="ext.so", whose="own", share=0.1),
        SymbolShare(symbol=None, file="libc.so.6", whose="other", share=0.7),
        SymbolShare(symbol="PyEval", file="python", whose="other", share=0.2),
    ]
    limit = of_samples(rows, cores_used=1.0, cores=2, bandwidth_share=None)
    assert limit is not None and (limit.code, limit.observed["of_c"]) == ("c_library", 0.7)
    limit = of_samples(rows, cores_used=1.0, cores=2, bandwidth_share=None, asleep_share=0.6)
    assert limit is not None and limit.code == "waits"
    assert of_samples([], cores_used=1.0, cores=2, bandwidth_share=None) is None
