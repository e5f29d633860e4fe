"""The counters that explain a kernel: our name, Nsight Compute's, and what they tell.

Names are those of Nsight Compute 2022.2 to 2025.3 for compute capability 7.0 and later. What a version or a device does
not have comes back as n/a and is left out.
"""

from __future__ import annotations

METRICS: dict[str, str] = {
    "duration_us": "gpu__time_duration.sum",
    # Throughputs, percent of the peak that can be sustained.
    "sm": "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    "memory": "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    "dram": "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    "l2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "l1": "l1tex__throughput.avg.pct_of_peak_sustained_active",
    "issue_active": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "tensor_pipe": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_active",
    "fma_pipe": "sm__pipe_fma_cycles_active.avg.pct_of_peak_sustained_active",
    # Occupancy, percent of the warps that a multiprocessor can hold; limits in blocks per multiprocessor.
    "achieved_occupancy": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "theoretical_occupancy": "sm__maximum_warps_per_active_cycle_pct",
    "limit_registers": "launch__occupancy_limit_registers",
    "limit_shared_memory": "launch__occupancy_limit_shared_mem",
    "limit_warps": "launch__occupancy_limit_warps",
    "limit_blocks": "launch__occupancy_limit_blocks",
    "eligible_warps": "smsp__warps_eligible.avg.per_cycle_active",
    # The launch.
    "registers": "launch__registers_per_thread",
    "static_shared": "launch__shared_mem_per_block_static",
    "dynamic_shared": "launch__shared_mem_per_block_dynamic",
    "waves": "launch__waves_per_multiprocessor",
    # Memory. Sectors are of 32 bytes; a coalesced request of 4-byte elements touches 4, of 16-byte elements 16.
    "dram_read": "dram__bytes_read.sum",
    "dram_written": "dram__bytes_write.sum",
    "l1_hit": "l1tex__t_sector_hit_rate.pct",
    "l2_hit": "lts__t_sector_hit_rate.pct",
    "load_sectors_per_request": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio",
    "store_sectors_per_request": "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_st.ratio",
    "load_sector_use": "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
    "store_sector_use": "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct",
    "shared_wavefronts": "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
    "bank_conflicts_load": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum",
    "bank_conflicts_store": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
    "sectors": "l1tex__t_sectors.sum",
    "local_load_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local_store_sectors": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
}

ISSUE_LATENCY = "smsp__average_warp_latency_per_inst_issued.ratio"
"""Cycles between two instructions of a warp."""

STALLS = (
    "barrier",
    "branch_resolving",
    "dispatch_stall",
    "drain",
    "gmma",
    "imc_miss",
    "lg_throttle",
    "long_scoreboard",
    "math_pipe_throttle",
    "membar",
    "mio_throttle",
    "misc",
    "no_instruction",
    "not_selected",
    "selected",
    "short_scoreboard",
    "sleeping",
    "tex_throttle",
    "wait",
)
_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
STALL_METRICS: dict[str, str] = {reason: _STALL.format(reason) for reason in STALLS}

SECTIONS = (
    "SpeedOfLight",
    "LaunchStats",
    "Occupancy",
    "SchedulerStats",
    "WarpStateStats",
    "MemoryWorkloadAnalysis",
    "ComputeWorkloadAnalysis",
    "SourceCounters",
)
"""Those whose rules are worth reading; the ones on coalescing and bank conflicts are in SourceCounters."""

_EXTRA = (
    "tensor_pipe",
    "fma_pipe",
    "dram_read",
    "dram_written",
    "load_sectors_per_request",
    "store_sectors_per_request",
    "load_sector_use",
    "store_sector_use",
    "shared_wavefronts",
    "bank_conflicts_load",
    "bank_conflicts_store",
    "sectors",
    "local_load_sectors",
    "local_store_sectors",
)
BESIDE_SECTIONS: tuple[str, ...] = tuple(METRICS[name] for name in _EXTRA)
"""What the sections do not collect by themselves, on every version and device."""
