"""Children of the nursery: what they get, how their ends are told, and that they can hurt nobody."""

from __future__ import annotations

import os
import resource
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tools.channel import ChannelClosed, ChannelGarbage, receive_json, send_json
from tools.nursery import Child, ExitStatus, Limits, Nursery, NurseryError
from tools.types import SandboxLevel

TARGETS = "tests.nursery.nursery_targets:"
WAIT = 60


def ended(child: Child) -> ExitStatus:
    status = child.wait(WAIT)
    assert status is not None
    return status


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_child_gets_its_arguments_and_its_channel(nursery: Nursery, sandboxed: bool) -> None:
    args = {"text": "ü" * 300_000, "list": [1, None, {"a": 0.5}]}
    with nursery.spawn(TARGETS + "echo", args, sandboxed=sandboxed) as child:
        assert receive_json(child.sock, timeout=WAIT) == args
        assert child.wait(0.01) is None
        send_json(child.sock, "bye")
        assert receive_json(child.sock, timeout=WAIT) == "bye"
        status = ended(child)
    assert status.ok
    assert status.processes_seen == 1
    assert child.wait(0) is status


def test_nothing_of_the_starter_reaches_a_child(nursery: Nursery, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("SOME_TOKEN", "sk-secret")
    with Nursery.start(nursery.level) as fresh:
        for sandboxed in (False, True):
            with fresh.spawn(TARGETS + "describe", {}, sandboxed=sandboxed) as child:
                seen = receive_json(child.sock, timeout=WAIT)
            assert "sk-secret" not in str(seen["environment"])
            assert seen["environment"]["OMP_WAIT_POLICY"] == "PASSIVE"
            # stdin, stdout and stderr, the channel, the line to the warden, and the folder that is being listed.
            assert len(seen["fds"]) <= 6
            assert seen["torch"]


def test_descriptors_are_handed_over_in_order(nursery: Nursery) -> None:
    pipes = [os.pipe() for _ in range(3)]
    with nursery.spawn(TARGETS + "write_to_fds", {}, sandboxed=True, fds=[write for _, write in pipes]) as child:
        for _, write in pipes:
            os.close(write)
        assert ended(child).ok
    for number, (read, _) in enumerate(pipes):
        with os.fdopen(read, "rb") as stream:
            assert stream.read() == f"fd {number}".encode()


@pytest.mark.parametrize("locked", [False, True])
@pytest.mark.parametrize(
    ("how", "code", "number"),
    [
        ("exit", 7, None),
        ("SystemExit", 3, None),
        ("exception", 1, None),
        ("return", 0, None),
        ("segfault", None, signal.SIGSEGV),
        ("abort", None, signal.SIGABRT),
        ("kill", None, signal.SIGKILL),
    ],
)
def test_each_end_is_told_as_it_was(
    nursery: Nursery, how: str, code: int | None, number: int | None, locked: bool
) -> None:
    with nursery.spawn(TARGETS + "end", {"how": how, "locked": locked}, sandboxed=True) as child:
        status = ended(child)
    assert (status.code, status.signal) == (code, number)
    assert not status.timed_out
    assert not status.out_of_memory
    assert status.violations == []
    if how == "exception":
        assert "RuntimeError: a reason to read" in status.output


def test_a_target_that_does_not_exist_is_told_by_the_child(nursery: Nursery) -> None:
    with nursery.spawn("tests.nursery.no_such_module:main", {}, sandboxed=True) as child:
        status = ended(child)
    assert status.code == 1
    assert "no_such_module" in status.output


def test_a_hang_ends_at_its_time_limit(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "end", {"how": "hang"}, sandboxed=True, limits=Limits(seconds=0.5)) as child:
        status = ended(child)
    assert status.timed_out
    assert (status.code, status.signal) == (None, signal.SIGKILL)


@pytest.mark.parametrize("sandboxed", [False, True])
def test_a_child_can_be_killed(nursery: Nursery, sandboxed: bool) -> None:
    with nursery.spawn(TARGETS + "end", {"how": "hang"}, sandboxed=sandboxed) as child:
        assert receive_json(child.sock, timeout=WAIT) == "hanging"
        assert Path(f"/proc/{child.pid}").exists()
        child.kill()
        status = ended(child)
        assert status.signal == signal.SIGKILL
        assert not status.timed_out
        assert not Path(f"/proc/{child.pid}").exists()


def test_a_flood_through_the_channel_costs_nobody_anything(nursery: Nursery) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with nursery.spawn(TARGETS + "flood_channel", {}, sandboxed=True) as child:
        with pytest.raises(ChannelGarbage):
            receive_json(child.sock, timeout=WAIT)
        child.kill()
        ended(child)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10
    with nursery.spawn(TARGETS + "end", {"how": "return"}, sandboxed=True) as after:
        assert ended(after).ok


def test_a_flood_of_output_is_cut_to_its_head_and_tail(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "flood_output", {}, sandboxed=True) as child:
        status = ended(child)
    assert status.ok
    assert status.output.startswith("the head\ncorrect")
    assert status.output.endswith("the tail")
    assert "bytes left out" in status.output
    assert len(status.output) < 40_000


def test_a_child_can_spawn_children_of_its_own(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "judge", {}, sandboxed=False, share_nursery=True) as child:
        reply = receive_json(child.sock, timeout=WAIT)
        assert ended(child).ok
    assert reply == {"heard": [{"from": "judge"}, "ping"], "code": 0, "level": nursery.level}


def test_what_a_dead_child_had_spawned_is_killed(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "judge_that_dies", {}, sandboxed=False, share_nursery=True) as child:
        worker = receive_json(child.sock, timeout=WAIT)
        assert ended(child).signal == signal.SIGKILL
    for _ in range(WAIT * 20):
        if not Path(f"/proc/{worker}").exists():
            break
        threading.Event().wait(0.05)
    assert not Path(f"/proc/{worker}").exists()


def test_many_threads_can_spawn_at_once(nursery: Nursery) -> None:
    def one(number: int) -> bool:
        with nursery.spawn(TARGETS + "echo", {"number": number}, sandboxed=True) as child:
            assert receive_json(child.sock, timeout=WAIT) == {"number": number}
            send_json(child.sock, number)
            return receive_json(child.sock, timeout=WAIT) == number and ended(child).ok

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(one, range(24)))


def test_one_child_leaves_nothing_in_the_memory_of_the_next(nursery: Nursery) -> None:
    halves = ["Rabarber" + "Barbara", "Barbaren" + "Bar"]
    with nursery.spawn(TARGETS + "echo", {"secret": "".join(halves)}, sandboxed=False) as child:
        receive_json(child.sock, timeout=WAIT)
        send_json(child.sock, 0)
        assert ended(child).ok
    with nursery.spawn(TARGETS + "search_memory", {"halves": halves}, sandboxed=False) as child:
        assert receive_json(child.sock, timeout=WAIT) == 0
    with nursery.spawn(
        TARGETS + "search_memory", {"halves": halves, "here": "".join(halves)}, sandboxed=False
    ) as child:
        assert receive_json(child.sock, timeout=WAIT) > 0


def test_threads_and_openmp_go_on_working_under_the_filter(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "threads", {}, sandboxed=True) as child:
        reply = receive_json(child.sock, timeout=WAIT)
        status = ended(child)
    assert status.ok, status
    assert reply["done"] == list(range(8))
    assert reply["same"]
    assert reply["tasks"] >= 3


def test_honest_code_is_not_accused(nursery: Nursery) -> None:
    with nursery.spawn(TARGETS + "honest", {}, sandboxed=True) as child:
        status = ended(child)
        assert status.violations == []
        assert status.ok, status.output
        assert receive_json(child.sock, timeout=WAIT) == "done"


def test_lock_down_is_an_error_where_there_is_no_warden() -> None:
    from tools.sandbox import lock_down

    with pytest.raises(RuntimeError, match="child of the nursery"):
        lock_down()


def test_the_nursery_stays_single_threaded_and_forks_on_after_its_starting_thread_has_ended() -> None:
    started: list[Nursery] = []
    thread = threading.Thread(target=lambda: started.append(Nursery.start(SandboxLevel.LIMITS)))
    thread.start()
    thread.join()
    with started[0] as nursery:
        for _ in range(2):
            with nursery.spawn(TARGETS + "end", {"how": "return"}, sandboxed=True) as child:
                assert ended(child).ok
        assert len(list(Path(f"/proc/{nursery.pid}/task").iterdir())) == 1


def test_a_nursery_that_is_gone_is_told_as_such() -> None:
    with Nursery.start(SandboxLevel.LIMITS) as nursery:
        child = nursery.spawn(TARGETS + "end", {"how": "hang"}, sandboxed=True)
        assert receive_json(child.sock, timeout=WAIT) == "hanging"
        assert nursery.pid is not None
        os.kill(nursery.pid, signal.SIGKILL)
        assert ended(child).signal == signal.SIGKILL
        with pytest.raises(ChannelClosed):
            receive_json(child.sock, timeout=WAIT)
        with pytest.raises(NurseryError, match="start the run again"):
            nursery.spawn(TARGETS + "end", {"how": "return"}, sandboxed=True)
