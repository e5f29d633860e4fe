"""Running a candidate outside of the judge, to look at how it runs: what profiling and memory checks have in common.

Nothing here gives a verdict or a time that counts. The candidate runs on the problem's own inputs, in a child of the
nursery or in a program of its own under an instrument (a sanitizer, a profiler), sandboxed either way.
"""
