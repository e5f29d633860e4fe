"""Problems: what a PyTorch module to be made faster is, where problems come from, and what their text tells.

A problem is a file in KernelBench's format (`Model`, `get_inputs`, `get_init_inputs`). This package reads, checks and
analyses its text and never executes it; running it is the judge's business. `seeds/` and `basics/` are our own sets.
"""

from problems.analysis import ProblemAnalysis, analyse
from problems.bundled import SETS, bundled_names, bundled_problems
from problems.loader import distinct_names, load_problem, locate_problem, resolve_set
from problems.spec import ProblemError, ProblemSpec

__all__ = [
    "SETS",
    "ProblemAnalysis",
    "ProblemError",
    "ProblemSpec",
    "analyse",
    "bundled_names",
    "bundled_problems",
    "distinct_names",
    "load_problem",
    "locate_problem",
    "resolve_set",
]
