"""`check_memory`: accesses outside of bounds, races and memory that was never written, located in the model's source.

On CUDA by compute-sanitizer's four tools, on the CPU by gcc's AddressSanitizer and UndefinedBehaviorSanitizer, on a
build of its own with line information. Besides, on both, by our own poison in memory that nobody has written.
"""

from tools.memcheck.records import MemoryCheck

__all__ = ["MemoryCheck"]
