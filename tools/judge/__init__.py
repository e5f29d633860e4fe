"""The judge: owns the reference, the secret seeds, the fp64 oracle, the tolerances, the clock and the verdict.

It runs in a process that no candidate ever shares, forked from the nursery, and answers typed requests from the
evaluator over a pipe that no candidate has. Everything in this folder is trusted; what it hears from a worker is not.
"""
