"""The judge's end of timed calls: who runs when, by whose clock, and what runs outside of the time that counts.

Caches are emptied by the judge itself, between two exchanges: nothing that a program does decides how cold they are.
The exchange in which a call is timed holds nothing else, so that the judge's clock and the worker's lie close together.
On the CPU a process stands still, all its threads, while it is not its turn, and what it runs in the exchanges before
and behind a call is read off the kernel's account of its threads. On CUDA, where threads take little and kernels all,
these exchanges are timed, together with the emptying of caches: a GPU shares its time between processes.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tools.judge import threads
from tools.judge.caches import caches
from tools.judge.client import Reply
from tools.worker.masking import write_pad

if TYPE_CHECKING:
    import torch

    from tools.judge.session import Session
    from tools.worker.gate import Gate


T = TypeVar("T")
HEAD_START_US = 100.0
"""The host has so much time to launch a call on CUDA before the device gets to it."""

QUEUE_SECONDS = 0.05
"""In which a row of calls is to be launched."""


class TimedCalls:
    """Timed calls of a session's program. Methods raise CandidateFailed for what goes wrong on the other side."""

    def __init__(self, session: Session) -> None:
        self._session, self._bench, self._worker = session, session.bench, session.worker
        self._still = self._bench.device == "cpu"
        self._ours: set[int] = set()
        self.ahead: list[float] = []
        """Microseconds that threads of the program's own ran while inputs were placed, by call."""

    def begin(self) -> None:
        """Note which threads the worker has before the program is loaded."""
        self._ours = set(threads.times(self._worker.child.pid))

    def time(
        self,
        spec: dict[str, Any],
        slot: int,
        *,
        cold: bool,
        seed: int | None = None,
        give_back: Sequence[int] = (),
        land: bool = True,
        patience: float | None = None,
    ) -> tuple[Reply, float]:
        """One timed forward on inputs that are in `slot` already, and how long its exchange took by our own clock, in
        us. What became of the inputs `give_back` is in `slot` afterwards; outputs are landed unless told otherwise.
        `patience` are seconds, where a call may take longer than calls do."""
        patience = self._session.patience if patience is None else patience
        request: dict[str, Any] = {"op": "time", "inputs": spec, "tensors": self._bench.slots[slot], "landing": 0}
        request |= {"seed": seed, "give_back": list(give_back), "head_start_us": HEAD_START_US * cold}
        ahead, placing = self._placed(slot, cold=cold)
        self._worker.resume()
        began = time.perf_counter_ns()
        reply = self._worker.run(request, patience)
        wall = _us_since(began)
        late = self._stop()
        found: dict[str, Any] = {"place_us": placing, "land_us": late}
        # Work is work, whenever it is done.
        found |= {name: getattr(reply, name) + ahead for name in ("us", "host_us", "drained_us")}
        if land:
            carried, taken = self._carried(request, patience)
            found |= {"outputs": carried.outputs, "tensors": carried.tensors, "land_us": late + taken}
        return reply.model_copy(update=found), wall + ahead

    def _placed(self, slot: int, *, cold: bool) -> tuple[float, float]:
        """Have inputs placed and, with `cold`, caches emptied. Returns the microseconds that threads of the program's
        own have run meanwhile, and what being given inputs has taken."""
        if not self._still:
            began = time.perf_counter_ns()
            self._place(slot)
            if cold:
                caches("cuda").empty()
            return 0.0, _us_since(began)
        pid = self._worker.child.pid
        before, spent = threads.times(pid), threads.process_time(pid)
        self._place(slot)
        after, spent = threads.times(pid), threads.process_time(pid) - spent
        if cold:
            caches("cpu").empty()
        placing = sum(us - before.get(t, 0.0) for t, us in after.items() if t in self._ours)
        ahead = max(spent - placing, 0.0)  # by threads that have ended, too
        self.ahead.append(ahead)
        return ahead, placing

    def _carried(self, request: dict[str, Any], patience: float) -> tuple[Reply, float]:
        """Outputs of the last call, landed, and what that has taken. From memory: what was left in caches would make it
        one time for one kernel and another for the other, and what is computed only now would not show."""

        def carry() -> Reply:
            # On CUDA work that the reply has not waited for delays the one or the other.
            caches(self._bench.device).empty()
            return self._worker.run({**request, "op": "land"}, patience)

        return self.accounted(carry)

    def accounted(self, what: Callable[[], T]) -> tuple[T, float]:
        """What an exchange gives, and the microseconds that it takes: of all threads of the process, also those that
        have ended, or on CUDA by our own clock."""
        if not self._still:
            began = time.perf_counter_ns()
            return what(), _us_since(began)
        before = threads.process_time(self._worker.child.pid)
        return what(), threads.process_time(self._worker.child.pid) - before

    def row(
        self,
        spec: dict[str, Any],
        calls: int,
        pad: list[torch.Tensor] | None,
        *,
        seed: int | None = None,
        forward: bool = True,
        keep: bool = False,
    ) -> float:
        """How long `calls` forwards in a row take, each on inputs of its own that are in the slots from 1 on already,
        in us by our own clock, with the exchange. On CUDA inputs are masked, and `pad` is stored only once all is
        launched, or can't be: the time begins with that. With `keep` what comes of them can be landed; without
        `forward` nothing is called."""
        bench, slots = self._bench, self._bench.slots
        request = {"op": "row", "inputs": spec, "sets": slots[1 : 1 + calls], "pad": slots[0], "seed": seed}
        request |= {"forward": forward, "keep": keep, "restore": self._session.initial_state()}
        patience = self._session.patience + calls * 20 * bench.reference_seconds
        self._worker.resume()
        began = time.perf_counter_ns()

        if (gate := self._worker.gate) is None:
            self._worker.ask(request, patience)
        else:

            def let_go() -> None:
                nonlocal began
                self._await_queued(gate)
                write_pad(bench.arenas["inputs"], slots[0], pad or [])
                bench.synchronize()
                began = time.perf_counter_ns()
                gate.open()

            gate.shut()
            self._worker.ask(request, patience, let_go)
        return _us_since(began) + self._stop()

    def land_row(self, call: int, give_back: Sequence[int] = ()) -> Reply:
        """Land the outputs of one call of the last row. What became of its inputs `give_back` is in slot 0
        afterwards."""
        request = {"op": "land_row", "call": call, "tensors": self._bench.slots[0], "give_back": list(give_back)}
        reply = self._landed(request)
        self._bench.synchronize()
        return reply

    def changed_inputs(self, slot: int, *, hold: bool = False) -> None:
        """Put what the last timed call has made of its inputs into `slot`. With `hold` its outputs are held."""
        request = {"op": "placed", "tensors": self._bench.slots[slot], "hold": hold}
        self._worker.ask(request, self._session.patience)
        self._bench.synchronize()

    def land_held(self) -> Reply:
        """Land the outputs that are held, as they are by now."""
        return self._landed({"op": "land_held"})

    def rest(self) -> None:
        """Have the process give cached device memory back."""
        self._worker.ask({"op": "rest"}, self._session.patience)

    def _landed(self, request: dict[str, Any]) -> Reply:
        self._bench.poison_landing(0xFF)
        self._bench.synchronize()
        return self._worker.run({**request, "landing": 0}, self._session.patience)

    def _place(self, slot: int) -> None:
        """Have inputs placed."""
        # On the CPU shared memory is as fast as any other, and what a copy takes would be time to work in.
        request: dict[str, Any] = {"op": "place", "copy": not self._still or self._bench.mutates}
        request |= {"tensors": self._bench.slots[slot], "restore": self._session.initial_state()}
        self._worker.resume()
        self._worker.ask(request, self._session.patience)
        self._rest()

    def _await_queued(self, gate: Gate) -> None:
        """Wait until all of a row is launched, or its process answers, which it does early only where something
        failed, or it has had long enough: a forward that waits for the device is launched no further."""
        stop = time.monotonic() + QUEUE_SECONDS
        while not gate.queued and time.monotonic() < stop:
            if select.select([self._worker.child.sock], [], [], 0.0001)[0]:
                return

    def _rest(self) -> None:
        if self._still:
            self._worker.pause()

    def _stop(self) -> float:
        """Have the process stand still that has just replied. Returns the microseconds that it goes on working until it
        does: a thread in a system call can't be stopped, and what that does is work, too."""
        if not self._still:
            return 0.0
        pid, began = self._worker.child.pid, time.perf_counter_ns()
        spent = threads.process_time(pid)
        self._worker.pause()
        # Threads that wait for work spin, which is none; and a busy machine stops a process late.
        return max(min(threads.process_time(pid) - spent, _us_since(began)), 0.0)  # it may have ended


def _us_since(began: int) -> float:
    return (time.perf_counter_ns() - began) / 1e3
