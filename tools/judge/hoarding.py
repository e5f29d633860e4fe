"""Device memory that a candidate holds, where none is left for the judge or the reference beside it."""

from __future__ import annotations

import contextlib
from collections.abc import Generator
from typing import TYPE_CHECKING

import torch

from tools.judge.failures import CandidateFailed, ReferenceFailed
from tools.judge.findings import observe
from tools.types import Verdict

if TYPE_CHECKING:
    from tools.judge.client import Worker
    from tools.judge.session import Session

LEAST_BYTES = 16 << 30
"""What any process of a candidate may hold: a context, workspaces, and what is kept back between timed calls."""

TIMES = 6
"""So many times its inputs and outputs it may hold besides."""


@contextlib.contextmanager
def its_own_memory(session: Session) -> Generator[None]:
    """Where something of ours finds no memory meanwhile, that is the candidate's failure if it holds far more than it
    needs: CandidateFailed in place of the error. Its process is ended then."""
    try:
        yield
    except (torch.OutOfMemoryError, ReferenceFailed) as error:
        bench = session.bench
        if bench.device != "cuda" or not _of_memory(error):
            raise
        held = _held(session.worker)
        if held <= LEAST_BYTES + TIMES * (bench.draw_bytes + bench.landing_bytes):
            raise
        summary = f"holds {held / 2**30:.0f} GiB of device memory: nothing finds any beside it"
        found = observe("out_of_memory", summary, held_gib=round(held / 2**30, 1))
        raise CandidateFailed(Verdict.RUNTIME_ERROR, found) from error


def _of_memory(error: Exception) -> bool:
    return isinstance(error, torch.OutOfMemoryError) or "out of memory" in str(error)


def _held(worker: Worker) -> int:
    """Bytes of the device that are free once a process has ended, and were not before."""
    before = torch.cuda.mem_get_info()[0]
    worker.end()
    return torch.cuda.mem_get_info()[0] - before
