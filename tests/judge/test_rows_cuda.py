"""Calls in a row on a GPU: their inputs come when the row begins, and the time of the calls is all that is taken."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
import torch

from tools.judge.bench import Bench
from tools.judge.crew import Crew
from tools.judge.failures import CandidateFailed
from tools.judge.fresh import FreshInputs
from tools.judge.rows import Rows
from tools.judge.session import Program, Session
from tools.judge.timed_outputs import TimedOutputs
from tools.nursery import Nursery
from tools.sandbox import probe_level
from tools.worker.arena import tensor_at
from tools.worker.masking import unmasked, write_masked, write_pad

pytestmark = pytest.mark.gpu

PROBLEM = """
import torch
class Model(torch.nn.Module):
    def forward(self, x, index):
        return (x * 2 + 1)[index]
def get_inputs():
    return [torch.randn(1 << 22), torch.randint(0, 1 << 22, (1 << 22,))]
def get_init_inputs():
    return []
"""
HONEST = """
import torch
class ModelNew(torch.nn.Module):
    def forward(self, x, index):
        return (x * 2 + 1)[index]
"""
WAITS_FOR_THE_DEVICE = HONEST.replace("return", "torch.cuda.synchronize(); return")
PEEKS = """
import sys
import torch

def worker():
    frame = sys._getframe()
    while frame is not None:
        if type(frame.f_locals.get("self")).__name__ == "Worker":
            return frame.f_locals["self"]
        frame = frame.f_back

ME = worker()
ME.timed._gate.hold = lambda stream: None  # begins before it is let

class ModelNew(torch.nn.Module):
    def forward(self, x, index):
        return (x * 2 + 1)[index % x.numel()]
"""


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bench, Crew]]:
    level = probe_level()
    with Nursery.start(level) as nursery:
        bench = Bench(PROBLEM, "full", "cuda")
        made = Crew(nursery, bench, {"cache_dir": str(tmp_path_factory.mktemp("cache"))})
        yield bench, made
        made.close()
        bench.close()


@pytest.fixture
def rows(crew: tuple[Bench, Crew]) -> Rows:
    bench, _ = crew
    outputs = TimedOutputs(bench, None)
    return Rows(bench, FreshInputs(bench, outlier=False), outputs, lambda: None, [])


def pair(crew: tuple[Bench, Crew], source: str) -> dict[str, Session]:
    bench, made = crew
    reference, _ = made.references(Program(bench.source, [], class_name="Model"))
    session = made.session(Program(source, []), guarded=False)
    session.load()
    return {"candidate": session, "reference": reference}


def test_rows_of_the_same_code_take_the_same_time(crew: tuple[Bench, Crew], rows: Rows):
    found = rows.least(pair(crew, HONEST), 20, 5)
    assert 5 < found["reference"] < 2000
    assert found["candidate"] == pytest.approx(found["reference"], rel=0.25, abs=5)


def test_a_forward_that_waits_for_the_device_does_not_hang(crew: tuple[Bench, Crew], rows: Rows):
    began = time.monotonic()
    found = rows.time(pair(crew, WAITS_FOR_THE_DEVICE), 4)
    assert found["candidate"].each > 0
    assert time.monotonic() - began < 20


def test_calls_that_begin_before_their_inputs_are_there_are_wrong(crew: tuple[Bench, Crew], rows: Rows):
    sides = pair(crew, PEEKS)
    with pytest.raises(CandidateFailed, match="wrong while it was timed"):
        for _ in range(4):  # the first takes so long to be launched that inputs come before the last calls
            rows.time(sides, 8)


def test_slots_hold_noise_until_a_row_begins(crew: tuple[Bench, Crew]):
    bench, _ = crew
    _, tensors = bench.problem.inputs(7)
    arena, (pad_places, places) = bench.arenas["inputs"], bench.slots[:2]
    pad = write_masked(arena, places, [t.clone() for t in tensors], None)
    stored = tensor_at(arena, places[1])
    assert int((stored == tensors[1]).sum()) < 10
    write_pad(arena, pad_places, pad)
    torch.cuda.synchronize()
    assert all(torch.equal(unmasked(arena, p, k), t) for p, k, t in zip(places, pad_places, tensors, strict=True))
