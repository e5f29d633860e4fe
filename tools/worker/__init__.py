"""The worker: one disposable process per candidate, untrusted from the moment the candidate is imported.

It imports the candidate's libraries (built before, it never compiles), receives inputs in shared buffers and returns
output bytes. It holds no expected outputs, no tolerances and no input seeds.
"""
