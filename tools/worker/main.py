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
from tools.worker.forms import Forms
from tools.worker.integrity import Integrity
from tools.worker.loader import BuiltLibraries, apply_overrides, construct, run_module
from tools.worker.placing import copy, late, placed
from tools.worker.poison import Poison
from tools.worker.seeding import seed_all
from tools.worker.stopwatch import Stopwatch
from tools.worker.timed import TimedCalls
from tools.worker.trees import digest, flatten, unflatten

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
        self.arenas = {name: Arena.open(export, waiting.pop(0)) for name, export in args["arenas"].items()}
        self.stopwatch = Stopwatch(self.device)
        self.libraries = BuiltLibraries([])
        self.integrity: Integrity | None = None
        self.module: types.ModuleType | None = None
        self.model: torch.nn.Module | None = None
        self.call: Any = None
        self.forms = Forms()
        self.kept: list[torch.Tensor] = []
        self.timed = TimedCalls(self)
        if self.device == "cuda" and args["guarded"]:
            # The first use of the profiler takes seconds, which this process still has.
            profile.cuda_kernels(lambda: torch.ones(1, device="cuda"))

    def answer(self, request: Message) -> Message:
        """Carry out one request; whatever the candidate raises becomes part of the reply."""
        name = "do_" + str(request["op"])
        handler = getattr(self, name, None) or getattr(self.timed, name)
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
        return self.land([state.get(name) for name in request["names"]], int(request["landing"]))

    def do_digests(self, _request: Message) -> Message:
        """Hashes of the values of the model's state, to match entries whose names differ."""
        assert self.model is not None
        return {"digests": {name: digest(value) for name, value in self.model.state_dict().items()}}

    def do_run(self, request: Message) -> Message:
        """One forward. Its outputs are copied out at once, on the current stream, with no synchronisation before."""
        self.restore(request)
        views = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        # As timed calls have them, so that none can tell a check by where its inputs lie.
        tensors = self._as_timed(views) if request.get("own") else views
        inputs = unflatten(request["inputs"], tensors)
        # A seed of our own before each forward: whoever seeds inside, with whatever value, leaves another.
        given = request.get("seed")
        seed = int(given) if given is not None else int.from_bytes(os.urandom(6), "little")
        seed_all(seed)
        poison = int(request.get("poison", 0))
        with self.guard.armed(poison):
            inputs = self._late_inputs(request) if request.get("late") else inputs
            output = self.forward(inputs)
            reply = self.land(output, int(request["landing"]))
            for view, tensor in zip(views, tensors, strict=True):
                if tensor is not view:
                    view.copy_(tensor)
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
        return self.land(tuple(kept), int(request["landing"]))

    def do_rest(self, _request: Message) -> Message:
        """Give device memory that is only kept back to the device."""
        self.kept = []
        self.timed.rest()
        self.forms.forget()
        if self.device == "cuda":
            torch.cuda.empty_cache()
        return {}

    def do_form(self, request: Message) -> Message:
        """Have calls go to another form of a trusted model: a baseline."""
        assert self.model is not None
        self.call = self.forms.use(self.model, str(request["kind"]))
        return {}

    def do_profile(self, request: Message) -> Message:
        """Which code the time of a forward goes to."""
        views = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        inputs = unflatten(request["inputs"], self._as_timed(views))

        def forward() -> object:
            return self.forward(inputs)

        forward()
        reply: Message = {"built_calls": profile.calls_into(forward, self.libraries.loaded)}
        if self.device == "cuda":
            reply["kernels"] = profile.cuda_kernels(forward)
        elif self.sampler is not None:
            reply["samples"] = profile.cpu_shares(
                forward, Path(self.sampler), self.libraries.paths, float(request["seconds"])
            )
        return reply

    def forward(self, inputs: list[Any]) -> object:
        """What is called: the model, or another form of it."""
        return self.call(*inputs)

    def _as_timed(self, views: list[torch.Tensor]) -> list[torch.Tensor]:
        return [placed(view) for view in views] if self.device == "cuda" else views

    def _late_inputs(self, request: Message) -> list[Any]:
        views = [tensor_at(self.arenas["inputs"], place) for place in request["tensors"]]
        return unflatten(request["inputs"], late(views, self.stopwatch))

    def restore(self, request: Message) -> None:
        """Put what forward changes in the model's state back to where it began."""
        if not request.get("restore"):
            return
        assert self.model is not None
        state = self.model.state_dict(keep_vars=True)
        for name, place in request["restore"]:
            source = tensor_at(self.arenas["weights"], place)
            if name in state and state[name].shape == source.shape:
                state[name].copy_(source)

    def land(self, output: object, start: int) -> Message:
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
        self.stopwatch.synchronize()  # before the judge, on a stream of its own, reads them
        return {"outputs": spec, "tensors": places}
