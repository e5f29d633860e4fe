"""The judge's end of a worker that forges, floods, tears, hangs or dies: real processes on a real socket."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tools.judge import client
from tools.judge.client import Worker
from tools.judge.failures import CandidateFailed, ReferenceFailed
from tools.nursery import Nursery
from tools.sandbox import Limits, probe_level
from tools.types import Verdict

Open = Callable[..., Worker]
GOOD: dict[str, Any] = {"outputs": {"t": "tensor", "i": 0}, "tensors": []}
PLACE: dict[str, Any] = {
    "offset": 0,
    "shape": [2],
    "stride": [1],
    "dtype": "float32",
    "bytes": 8,
    "device": "cpu",
    "plain": True,
    "aliases_input": False,
    "address": 4096,
}


@pytest.fixture(scope="module")
def nursery() -> Iterator[Nursery]:
    with Nursery.start(probe_level()) as started:
        yield started


@pytest.fixture
def worker(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> Iterator[Open]:
    """A `Worker` whose process is `worker_replies.reply`."""
    opened: list[Worker] = []
    spawn = nursery.spawn

    def instead(_target: str, args: dict[str, Any], **more: Any) -> Any:
        return spawn("tests.judge.worker_replies:reply", args, **more)

    def start(how: str, answer: Any = None, *, sandboxed: bool = True) -> Worker:
        monkeypatch.setattr(nursery, "spawn", instead)
        args = {"how": how, "answer": answer}
        limits = Limits(seconds=60)
        found = Worker(nursery, {}, args, limits, readable=[], hidden=[], sandboxed=sandboxed)
        opened.append(found)
        return found

    yield start
    for each in opened:
        each.close()


def failure(worker: Worker, seconds: float = 20.0) -> CandidateFailed:
    with pytest.raises(CandidateFailed) as raised:
        worker.run({"op": "run"}, seconds)
    return raised.value


def test_a_request_and_its_reply(worker: Open):
    assert worker("echo").ask({"op": "x", "n": [1, None]}, 20) == {"echo": {"op": "x", "n": [1, None]}}
    reply = worker("answer", {**GOOD, "tensors": [PLACE], "us": 3.5}).run({"op": "run"}, 20)
    assert (reply.us, reply.tensors[0].shape, reply.reseeded) == (3.5, [2], False)


@pytest.mark.parametrize("how", ["too long", "no JSON", "deep"])
def test_what_is_no_frame_of_ours_is_a_forgery(worker: Open, how: str):
    failed = failure(worker(how))
    assert (failed.verdict, failed.finding.code) == (Verdict.CHEATING, "forged_reply")


@pytest.mark.parametrize(
    "answer",
    [
        [],
        "correct",
        3,
        None,
        {},
        {"outputs": 3, "tensors": []},
        {**GOOD, "verdict": "correct"},
        {**GOOD, "tensors": [{**PLACE, "offset": -1}]},
        {**GOOD, "tensors": [{**PLACE, "pickle": "x"}]},
        {**GOOD, "tensors": [{**PLACE, "shape": [1] * 65}]},
        {**GOOD, "tensors": [{**PLACE, "dtype": "x" * 33}]},
        {**GOOD, "tensors": [PLACE] * 4097},
        {**GOOD, "us": "fast"},
        {**GOOD, "changes": ["x"] * 65},
        {"error": "it went well"},
        {"error": {"kind": "python", "type": "x" * 201}},
        {"error": {"type": "RuntimeError"}},
    ],
    ids=lambda answer: str(answer)[:40],
)
def test_a_reply_of_a_form_that_no_worker_sends_is_a_forgery(worker: Open, answer: Any):
    failed = failure(worker("answer", answer))
    assert (failed.verdict, failed.finding.code) == (Verdict.CHEATING, "forged_reply")


@pytest.mark.parametrize("how", ["no JSON", "leaves with 7", "answer"])
def test_what_goes_wrong_in_the_references_process_is_no_candidates_fault(worker: Open, how: str):
    found = worker(how, {"error": {"kind": "python", "type": "OutOfMemoryError"}}, sandboxed=False)
    with pytest.raises(ReferenceFailed, match="reference"):
        found.run({"op": "run"}, 20.0)


@pytest.mark.parametrize("how", ["silent", "drips", "closed"])
def test_no_answer_in_time_ends_the_process(worker: Open, how: str, monkeypatch: pytest.MonkeyPatch):
    found = worker(how)
    failed = failure(found, seconds=1.0)
    assert (failed.verdict, failed.finding.code) == (Verdict.TIMEOUT, "hung")
    found.child.kill()
    assert found.child.wait(10) is not None


@pytest.mark.parametrize(
    ("how", "verdict", "code"),
    [
        ("leaves", Verdict.CHEATING, "exited"),
        ("torn", Verdict.CHEATING, "exited"),
        ("leaves with 7", Verdict.RUNTIME_ERROR, "exited"),
        ("aborts", Verdict.RUNTIME_ERROR, "crashed"),
    ],
)
def test_a_process_that_ends_instead_of_answering(worker: Open, how: str, verdict: Verdict, code: str):
    failed = failure(worker(how))
    assert (failed.verdict, failed.finding.code) == (verdict, code)


@pytest.mark.parametrize("how", ["dies before it is ready", "never ready"])
def test_a_worker_that_does_not_start_is_our_own_failure(worker: Open, how: str, monkeypatch: pytest.MonkeyPatch):
    """No candidate has run in it yet: whoever is to blame, it is not one."""
    monkeypatch.setattr(client, "LOAD_SECONDS", 1.0)
    with pytest.raises(RuntimeError, match="a worker did not start"):
        worker(how).ask({"op": "run"}, 20)


@pytest.mark.parametrize(
    ("error", "verdict", "code", "summary"),
    [
        ({"kind": "python", "type": "ValueError", "message": "no", "line": 7, "source_line": "raise"},
         Verdict.RUNTIME_ERROR, "python_exception", "ValueError at line 7: no"),
        ({"kind": "load", "type": "LoadFailure", "message": "no class"},
         Verdict.LOAD_ERROR, "python_exception", "LoadFailure: no class"),
        ({"kind": "tree", "type": "TreeError", "message": "a value of type object"},
         Verdict.WRONG_RESULT, "wrong_structure", "TreeError: a value of type object"),
        ({"kind": "exited", "type": "SystemExit", "message": "0"},
         Verdict.CHEATING, "exited", "the candidate raised SystemExit(0)"),
    ],
)  # fmt: skip
def test_what_a_candidate_raises(worker: Open, error: dict[str, Any], verdict: Verdict, code: str, summary: str):
    failed = failure(worker("answer", {"error": error}))
    assert (failed.verdict, failed.finding.code, failed.finding.summary) == (verdict, code, summary)


def test_a_long_message_is_cut(worker: Open):
    error = {"kind": "python", "type": "ValueError", "message": "x" * 4000}
    assert len(failure(worker("answer", {"error": error})).finding.summary) == 1500
