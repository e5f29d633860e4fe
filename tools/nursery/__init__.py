"""The nursery: one trusted process per run that imports torch once and forks every other process from itself.

It starts the judge, capture children and workers in tens of milliseconds, each watched over by a warden of its own
(`tools.sandbox.warden`), and takes all of them with it when it or its starter ends. It runs no candidate code, holds no
candidate's data and never touches a GPU.
"""

from tools.nursery.client import Child, Nursery, NurseryError
from tools.sandbox import ExitStatus, Limits

__all__ = ["Child", "ExitStatus", "Limits", "Nursery", "NurseryError"]
