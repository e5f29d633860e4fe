"""What the kernel says of threads, of this process here."""

from __future__ import annotations

import os
import threading
import time

from tools.judge import threads


def test_the_time_of_threads_that_have_ended_is_not_lost():
    def busy() -> None:
        began = time.thread_time_ns()
        while time.thread_time_ns() - began < 50_000_000:
            pass

    spent = threads.process_time(os.getpid())
    thread = threading.Thread(target=busy)
    thread.start()
    thread.join()
    give_up = time.monotonic() + 60
    while thread.native_id in threads.times(os.getpid()) and time.monotonic() < give_up:
        time.sleep(0.01)  # the kernel is not done with it when it is joined
    assert thread.native_id not in threads.times(os.getpid())
    assert threads.process_time(os.getpid()) - spent > 49_000


def test_of_a_process_that_is_gone_nothing_is_said():
    assert threads.process_time(2**22 + 1) == 0.0
    assert threads.times(2**22 + 1) == {}
