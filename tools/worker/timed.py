"""Timed calls of a worker: inputs placed in memory of its own, one call or a row of them, outputs carried away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from tools.worker.arena import tensor_at
from tools.worker.gate import Gate
from tools.worker.masking import unmasked
from tools.worker.placing import Ring, placed
from tools.worker.seeding import seed_all
from tools.worker.trees import flatten, unflatten

if TYPE_CHECKING:
    from tools.worker.main import Worker

Message = dict[str, Any]


class TimedCalls:
    """Answers the requests of a timing. It never knows what outputs should be, nor which of them are looked at."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._stopwatch = worker.stopwatch
        self._placed: list[torch.Tensor] = []
        self._output: object = None
        self._row: list[tuple[list[torch.Tensor], object]] = []
        self._gate = Gate(worker.arenas["gate"]) if worker.device == "cuda" else None
        self._latest: list[torch.Tensor] = []
        self._held: list[torch.Tensor] = []
        self._earlier_inputs, self._earlier_outputs = Ring(worker.device), Ring(worker.device)

    def do_place(self, request: Message) -> Message:
        """Take the inputs of the next calls from the shared buffer, and put what forward changes in the model back to
        where it began. With `copy` they are copied into memory of this process's own, where they lie changes then from
        call to call; without it no code runs that depends on them. Replies when nothing is left to do."""
        self._worker.restore(request)
        views = [tensor_at(self._worker.arenas["inputs"], place) for place in request["tensors"]]
        self._earlier_outputs.hold(self._latest)
        self._earlier_inputs.hold(self._placed)
        self._latest, self._output = [], None
        self._placed = []
        self._placed = [placed(view) for view in views] if request["copy"] else views
        self._stopwatch.synchronize()
        return {}

    def do_time(self, request: Message) -> Message:
        """One timed forward on the inputs placed last. Replies in microseconds."""
        inputs = unflatten(request["inputs"], self._placed)
        if request.get("seed") is not None:
            seed_all(int(request["seed"]))
        forward = self._worker.forward
        self._output, times = self._stopwatch.time(lambda: forward(inputs), float(request["head_start_us"]))
        self._latest = flatten(self._output)[1]
        return {"outputs": {}, "tensors": [], **times}

    def do_land(self, request: Message) -> Message:
        """Copy out the outputs of the last timed call, and what it has made of the inputs `give_back`."""
        reply = self._worker.land(self._output, int(request["landing"]))
        for i in request["give_back"]:
            self._give_back(request["tensors"][i], self._placed[i])
        self._stopwatch.synchronize()
        return reply

    def do_placed(self, request: Message) -> Message:
        """Copy what is now in the inputs of the last timed call to the shared buffer. With `hold` its outputs are held
        until they are asked for."""
        for place, tensor in zip(request["tensors"], self._placed, strict=True):
            self._give_back(place, tensor)
        self._stopwatch.synchronize()
        self._held = self._latest if request["hold"] else self._held
        return {}

    def do_land_held(self, request: Message) -> Message:
        """Copy out the outputs that are held."""
        held, self._held = self._held, []
        return self._worker.land(tuple(held), int(request["landing"]))

    def do_row(self, request: Message) -> Message:
        """Forwards in a row, each on the next of the `sets` of inputs in the shared buffer; without `forward` nothing
        is called. With `keep` all inputs and outputs are kept. On CUDA the inputs are masked: all that is done with
        them is launched behind the gate, and the pad comes before that is opened."""
        worker, arena = self._worker, self._worker.arenas["inputs"]
        worker.restore(request)
        self._placed, self._latest, self._output, self._row = [], [], None, []
        self._stopwatch.synchronize()
        if self._gate is not None:
            self._gate.hold(torch.cuda.current_stream())
        for places in request["sets"]:
            if self._gate is None:
                given = [tensor_at(arena, place) for place in places]
            else:
                given = [unmasked(arena, place, pad) for place, pad in zip(places, request["pad"], strict=True)]
            if request.get("seed") is not None:
                seed_all(int(request["seed"]))
            output = worker.forward(unflatten(request["inputs"], given)) if request["forward"] else None
            if request["keep"]:
                self._row.append((given, output))
        if self._gate is not None:
            self._gate.say_queued()
        self._stopwatch.synchronize()
        return {}

    def do_land_row(self, request: Message) -> Message:
        """Copy out the outputs of one call of the last row, and what it has made of the inputs `give_back`."""
        call = int(request["call"])
        given, output = self._row[call]
        self._row[call] = [], None
        reply = self._worker.land(output, int(request["landing"]))
        for i in request["give_back"]:
            self._give_back(request["tensors"][i], given[i])
        self._stopwatch.synchronize()
        return reply

    def _give_back(self, place: Message, tensor: torch.Tensor) -> None:
        target = tensor_at(self._worker.arenas["inputs"], place)
        if target.data_ptr() != tensor.data_ptr():
            target.copy_(tensor)

    def rest(self) -> None:
        """Let go of what is only kept."""
        self._output, self._row, self._latest, self._held = None, [], [], []
