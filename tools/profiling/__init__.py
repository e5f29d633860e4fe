"""`profile_kernel`: where the time of a candidate goes, what its kernels wait for, and what to try first.

By Nsight Compute where it is installed and may read the counters, else by CUPTI through torch.profiler; on the CPU by
sampling program counters. What it says helps to find speed and is no evidence of any.
"""

from tools.profiling.records import Profile

__all__ = ["Profile"]
