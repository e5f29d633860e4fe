"""The fast build route: thin headers instead of torch's own, over a bridge to libtorch that is built once.

Nearly all the time of a stock build goes into parsing torch's headers. Here the compiler sees `include/` in their
place: small headers that declare the same names and call libtorch through the C interface of `bridge/`. What they do
not have fails to compile, and the stock route takes the source. `prepare` gives the kit, `compile_fast` builds.
"""

from tools.build.fast.compile import FastPlan, compile_fast, plan
from tools.build.fast.kit import FastKit, find, prepare

__all__ = ["FastKit", "FastPlan", "compile_fast", "find", "plan", "prepare"]
