"""Builds: from the text of a candidate file to shared objects that a worker can load.

`Builder.build` runs the candidate just far enough to catch its `load_inline` calls (`capture`), settles what they
mean (`plumbing`), and compiles them in the sandbox by the fast route or by the one that torch itself would take
(`stock`). Results are kept by content (`cache`). Nothing here imports torch but the capture child.
"""

from tools.build.builder import Builder
from tools.build.toolchain import Nvcc, Toolchain, ToolchainError, find_all_nvcc, find_toolchain

__all__ = ["Builder", "Nvcc", "Toolchain", "ToolchainError", "find_all_nvcc", "find_toolchain"]
