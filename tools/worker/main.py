"""The worker's loop: load one candidate, then run or time it on the inputs that the judge has placed in shared memory.

What this process says is believed only as far as it can be checked: outputs are bytes that the judge compares, times
are held against the judge's own clock, and everything else is a hint. It never holds expected outputs, tolerances or
the seeds that inputs are drawn from.
"""

from __future__ import annotations

import os
import socket
import types
from pathlib import Path
from typing import Any

import torch

from tools.channel import ChannelClosed, receive_json, send_json
from tools.sandbox import lock_down
from tools.worker import profile
from tools.worker.arena import Arena, Layout, tensor_at
from tools.worker.failure import describe
from tools.worker.integrity import Integrity
from tools.worker.loader import BuiltLibraries, apply_overrides, construct, run_module
from tools.worker.placing import Ring, copy, late, placed
from tools.worker.poison import Poison
from tools.worker.stopwatch import Stopwatch
from tools.worker.trees import digest, flatten, unflatten
from tools.worker.variants import Variants

Message = dict[str, Any]
DETACH = torch.Tensor.detach
"""Bound before a candidate can put another in its place."""


def main(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Entry point in a forked process. `fds` are the arenas, in the order of `args["arenas"]`."""
    torch.set_num_threads(int(args["threads"]))
    torch.set_grad_enabled(False)
    worker = Worker(args, fds)
    if not args["trusted"]:
        lock_down()
    send_json(sock, {"ready": True})
    while True:
        try:
            request = receive_json(sock, timeout=None)
        except ChannelClosed:
            return
        send_json(sock, worker.answer(request))


class Worker:
    """One candidate's process: its buffers, its module and what it last returned."""

    def __init__(self, args: dict[str, Any], fds: list[int]) -> None:
        self.device: str = args["device"]
        self.threads = int(args["threads"])
        self.sampler: str | None = args.get("sampler")
        # The guarded allocator must be in place before anything touches the device.
        self.guard = Poison(args["device"], args.get("helper") if args["guarded"] else None)
        waiting = list(fds)
        self.arenas = {
            name: Arena.open(args["device"], export, waiting.pop(0)) for name, export in args["arenas"].items()
        }
        self.stopwatch = Stopwatch(self.device, int(args["flush_bytes"]))
        self.libraries = BuiltLibraries([])
        self.integrity: Integrity | None = None
        self.module: types.ModuleType | None = None
        self.model: torch.nn.Module | None = None
        self.call: Any = None
        self.variants = Variants()
        self.kept: list[torch.Tensor] = []
        self.placed: list[torch.Tensor] = []
        self.latest: list[torch.Tensor] = []
        self.earlier_inputs, self.earlier_outputs = Ring(self.device), Ring(self.device)
        if self.device == "cuda" and args["guarded"]:
            # The first use of the profiler takes seconds, which this process still has.
            profile.cuda_kernels(self.stopwatch.flush)

    def answer(self, request: Message) -> Message:
        """Carry out one request; whatever the candidate raises becomes part of the reply."""
        handler = getattr(self, "do_" + str(request["op"]))
        try:
            return handler(request)
        except (KeyboardInterrupt, SystemExit, GeneratorExit) as leaving:
            return {"error": {"kind": "exited", "type": type(leaving).__name__, "message": str(leaving)[:500]}}
        except BaseException as error:
            return {"error": describe(error)}

    def do_load(self, request: Message) -> Message:
        """Import the candidate and construct its model. Replies with its state: name, dtype and shape of each entry."""
        self.libraries = BuiltLibraries(request["modules"])
        self.libraries.install()
        self.integrity = Integrity()
        self.module = run_module(request["source"], self.libraries)
        apply_overrides(self.module, request.get("overrides", {}))
        return self.do_construct(request)

    def do_construct(self, request: Message) -> Message:
        """Construct the model anew under another seed."""
        assert self.module is not None
        tensors = [tensor_at(self.arenas["weights"], place).clone() for place in request["init_tensors"]]
        init_args = unflatten(request["init_args"], tensors)
        self.model = construct(self.module, request["class"], init_args, int(request["seed"]), self.device)
        self.model.train(bool(request["training"]))
        self.call = self.model
        state = self.model.state_dict()
        entries = [[name, str(v.dtype).removeprefix("torch."), list(v.shape)] for name, v in state.items()]
        return {"state": entries[:10000]}

    def do_weights(self, request: Message) -> Message:
        """Copy values from the weights buffer over entries of the model's state, in place."""
        assert self.model is not None
        state = self.model.state_dict(keep_vars=True)
        # As load_state_dict does it: a version that counts on tells a copy of the weights to be made again.
        with torch.no_grad():
            for name, place in request["entries"]:
                state[name].copy_(tensor_at(self.arenas["weights"], place))
        return {"copied": len(request["entries"])}

    def do_state(self, request: Message) -> Message:
        """Copy out entries of the model's state; None where there is no such entry (any more)."""
        assert self.model is not None
        state = self.model.state_dict()
        return self._land([state.get(name) for name in request["names"]], int(request["landing"]))

    def do_digests(self, _request: Message) -> Message:
        """Hashes of the values of the model's state, to match entries whose names differ."""
        assert self.model is not None
        return {"digests": {name: digest(value) for name, value in self.model.state_dict().items()}}

    def do_run(self, request: Message) -> Message:
        """One forward. Its outputs are copied out at once, on the current stream, with no synchronisation before."""
        self._restore(request)
        inputs = self._inputs(request)
        # A seed of our own before each forward: whoever seeds inside, with whatever value, leaves another.
        given = request.get("seed")
        seed = int(given) if given is not None else int.from_bytes(os.urandom(6), "little")
        torch.manual_seed(seed)
        poison = int(request.get("poison", 0))
        with self.guard.armed(poison):
            inputs = self._late_inputs(request) if request.get("late") else inputs
            output = self._forward(inputs)
            reply = self._land(output, int(request["landing"]))
            self.stopwatch.synchronize()
            reply["damage"] = self.guard.damage()
        if request.get("keep"):
            self.kept = flatten(output)[1]
        reply["reseeded"] = torch.initial_seed() != seed
        assert self.integrity is not None
        reply["changes"], reply["flags"] = self.integrity.changes(), self.integrity.flags()
        return reply

    def do_land_kept(self, request: Message) -> Message:
        """Copy out once more the outputs of the last run that asked to be kept."""
        kept, self.kept = self.kept, []
        return self._land(tuple(kept), int(request["landing"]))

    def do_place(self, request: Message) -> Message:
        """Place the inputs of the next timed call."""
        self._place(request)
        return {}

    def do_flush(self, _request: Message) -> Message:
        """Empty the caches and wait until that is done."""
        self.stopwatch.flush()
        self.stopwatch.synchronize()
        return {}

    def do_rest(self, _request: Message) -> Message:
        """Give device memory that is only kept back to the device."""
        self.kept, self.latest = [], []
        self.variants.forget()
        if self.device == "cuda":
            torch.cuda.empty_cache()
        return {}

    def do_time(self, request: Message) -> Message:
        """One timed forward, outputs copied out after the window. Replies in microseconds."""
        if not request.get("placed"):
            self._place(request)
        inputs = unflatten(request["inputs"], self.placed)
        if request.get("seed") is not None:
            torch.manual_seed(int(request["seed"]))
        output, times = self.stopwatch.time(lambda: self._forward(inputs), cold=bool(request["cold"]))
        began = self.stopwatch.mark()
        reply = self._land(output, int(request["landing"])) if request["land"] else {"outputs": {}, "tensors": []}
        times["land_us"] = self.stopwatch.since(began)
        for i in request["give_back"]:
            tensor_at(self.arenas["inputs"], request["tensors"][i]).copy_(self.placed[i])
        self.stopwatch.synchronize()
        self.latest = flatten(output)[1]
        return {**reply, **times}

    def do_placed(self, request: Message) -> Message:
        """Copy what is now in the inputs of the last timed call to the shared buffer."""
        for place, tensor in zip(request["tensors"], self.placed, strict=True):
            tensor_at(self.arenas["inputs"], place).copy_(tensor)
        self.stopwatch.synchronize()
        self.kept = self.latest if request["keep"] else self.kept
        return {}

    def do_series(self, request: Message) -> Message:
        """Forwards in a row on the inputs placed last, of which the last's outputs can be kept. On CUDA the device
        waits first, so that the calls queue up."""
        inputs = unflatten(request["inputs"], self.placed)
        output: object = None
        self.kept = []
        self.stopwatch.wait(float(request["wait_us"]))
        for _ in range(int(request["calls"])):
            output = None  # there may be no room for another
            if request.get("seed") is not None:
                torch.manual_seed(int(request["seed"]))
            output = self._forward(inputs)
        self.stopwatch.synchronize()
        self.kept = flatten(output)[1] if request["keep"] else []
        return {}

    def do_variant(self, request: Message) -> Message:
        """Have calls go to another form of a trusted model: a baseline."""
        assert self.model is not None
        self.call = self.variants.use(self.model, str(request["kind"]))
        return {}

    def do_profile(self, request: Message) -> Message:
        """Which code the time of a forward goes to."""
        inputs = self._inputs(request)

        def forward() -> object:
            return self._forward(inputs)

        forward()
        reply: Message = {"built_calls": profile.calls_into(forward, self.libraries.loaded)}
        if self.device == "cuda":
            reply["kernels"] = profile.cuda_kernels(forward)
        elif self.sampler is not None:
            reply["samples"] = profile.cpu_shares(
                forward, Path(self.sampler), self.libraries.paths, float(request["seconds"])
            )
        return reply

    def _forward(self, inputs: list[Any]) -> object:
        return self.call(*inputs)

    def _inputs(self, request: Message) -> list[Any]:
        tensors = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        return unflatten(request["inputs"], tensors)

    def _late_inputs(self, request: Message) -> list[Any]:
        views = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        return unflatten(request["inputs"], late(views, self.stopwatch))

    def _place(self, request: Message) -> None:
        """Copy inputs out of the shared buffer into memory of this process's own, as a caller of the model has them.

        Shared memory is mapped in smaller pages: on an H200 a kernel that reads along a stride of 4 MB took 5.7 ms on
        memory opened by IPC and 3.8 ms on its own.
        """
        self._restore(request)
        views = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        self.earlier_outputs.hold(self.latest)
        self.earlier_inputs.hold(self.placed)
        self.latest = []
        self.placed = []
        self.placed = [placed(view) for view in views]

    def _restore(self, request: Message) -> None:
        """Put what forward changes in the model's state back to where it began."""
        if not request.get("restore"):
            return
        assert self.model is not None
        state = self.model.state_dict(keep_vars=True)
        for name, place in request["restore"]:
            source = tensor_at(self.arenas["weights"], place)
            if name in state and state[name].shape == source.shape:
                state[name].copy_(source)

    def _land(self, output: object, start: int) -> Message:
        """Copy outputs into the landing buffer from `start` on and describe them."""
        spec, tensors = flatten(output)
        layout, places = Layout(start), []
        for tensor in tensors:
            plain = type(tensor) in (torch.Tensor, torch.nn.Parameter)
            # Another object on the same memory: methods that were set on the candidate's own don't go along.
            tensor = DETACH(tensor) if plain else tensor
            place = layout.place(tensor.detach() if tensor.is_contiguous() else torch.empty_like(tensor, device="meta"))
            device, address = tensor.device.type, tensor.data_ptr()
            # Outputs that don't fit have another shape or dtype than the reference's: the judge will say which.
            if layout.end <= self.arenas["landing"].size:
                copy(tensor, tensor_at(self.arenas["landing"], place))
            inside = any(a.address <= address < a.address + a.size for a in self.arenas.values()) and tensor.numel() > 0
            places.append({**place, "device": device, "plain": plain, "aliases_input": inside, "address": address})
        return {"outputs": spec, "tensors": places}
