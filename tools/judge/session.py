"""One candidate loaded in one worker: the conversation that checking and timing share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from tools.judge import ownership
from tools.judge.bench import Bench
from tools.judge.client import Reply, Worker
from tools.judge.errors import identical
from tools.judge.failures import CandidateFailed
from tools.judge.findings import observe
from tools.judge.module_state import State
from tools.judge.timed_calls import TimedCalls
from tools.judge.trial import Trial
from tools.judge.weights import Entry, Mapping, entries, match
from tools.types import Verdict
from tools.worker.arena import tensor_at
from tools.worker.trees import digest, flatten, unflatten

CALL_SECONDS = {"cpu": 10.0, "cuda": 20.0}
"""CUDA's driver took 5 s to end a kernel after an illegal access while other processes started there, and more than 10
beside three other judges."""

LOAD_SECONDS = 60.0
PROFILE_SECONDS = 0.3


@dataclass(frozen=True)
class Program:
    """What a worker is to load: a source with the libraries built for it, and the class to construct."""

    source: str
    modules: list[dict[str, str]]
    class_name: str = "ModelNew"
    overrides: dict[str, Any] | None = None
    kernels: frozenset[str] = frozenset()
    """Names of the `__global__` functions in its libraries, mangled and demangled."""


class Session:
    """A program in a worker. Every method raises CandidateFailed for what the other side does wrong."""

    def __init__(self, bench: Bench, worker: Worker, program: Program) -> None:
        self.bench = bench
        self.worker = worker
        self.program = program
        self.mapping = Mapping([], "", complete=True)
        self.timed = TimedCalls(self)
        self.entries: list[Entry] = []
        """The state of the program's model."""

    def load(self) -> None:
        """Import the program, construct its model under the bench's seed, and copy the reference's weights over."""
        self.worker.await_start()
        self.timed.begin()
        reply = self.worker.ask(
            {
                "op": "load",
                "source": self.program.source,
                "modules": self.worker.lend(self.program.modules),
                "overrides": self.program.overrides or {},
                **self._construction(self.bench.seed),
            },
            LOAD_SECONDS,
        )
        try:
            state = [(str(n), str(d), tuple(int(x) for x in s)) for n, d, s in reply["state"]]
        except (KeyError, TypeError, ValueError) as error:
            raise _forged() from error
        self.entries = state
        reference = entries(self.bench.model)
        digests: tuple[dict[str, str], dict[str, str]] = ({}, {})
        if {(n, d, s) for n, d, s in reference} - set(state):
            theirs = self.digests()
            ours = {n: digest(v) for n, v in self.bench.model.state_dict().items()}
            digests = (ours, {n: str(theirs.get(n)) for n, _, _ in state})
        self.mapping = match(reference, state, digests)
        repair = self.bench.problem.repair
        if not self.mapping.complete and repair is not None and repair.weight is not None:
            # Constructing under the same seed gives weights that are not those of this run.
            raise CandidateFailed(Verdict.WRONG_RESULT, observe("weights_not_loaded", self.mapping.how))
        # A program that ran before could write there, and round the inputs.
        self.bench.write_weights(self.bench.model)
        for slot in range(2):  # where trials are put
            self.bench.guards_intact(slot)
        self._copy_weights()

    def run(
        self,
        spec: dict[str, Any],
        tensors: list[torch.Tensor],
        slot: int,
        *,
        poison: int = 0,
        seed: int | None = None,
        keep: bool = False,
        late: bool = False,
        own: bool = False,
        restore: bool = True,
    ) -> Reply:
        """One forward on inputs placed in `slot`, outputs landed over poison. With `late` the inputs' values arrive,
        on the current stream, only after forward has been called; with `own` they lie in memory of the worker's own,
        as those of timed calls do. Without `restore` it goes on from the state that the last forward left."""
        self.bench.make_room()
        places = self.bench.write_inputs(tensors, slot)
        self.bench.poison_landing(poison or 0xFF)
        self.bench.synchronize()
        request = {
            "op": "run",
            "inputs": spec,
            "tensors": places,
            "landing": 0,
            "poison": poison,
            "seed": seed,
            "keep": keep,
            "late": late,
            "own": own,
            "restore": self.initial_state() if restore else [],
        }
        return self.worker.run(request, self.patience)

    def land_kept(self) -> Reply:
        """Land the outputs of the run that was kept once more."""
        self.bench.poison_landing(0xFF)
        self.bench.synchronize()
        return self.worker.run({"op": "land_kept", "landing": 0}, self.patience)

    def changed_inputs(self, trial: Trial, slot: int) -> list[int]:
        """Indices of inputs in the shared buffer that are no longer what the judge has put there."""
        placed = [tensor_at(self.bench.arenas["inputs"], p) for p in self.bench.slots[slot]]
        return [i for i, (a, b) in enumerate(zip(placed, trial.tensors, strict=True)) if not identical(a, b)]

    @property
    def patience(self) -> float:
        """Seconds for one call: CALL_SECONDS, and twenty times what the reference takes."""
        return CALL_SECONDS[self.bench.device] + 20 * self.bench.reference_seconds

    def change_weights(self, model: torch.nn.Module, seed: int) -> None:
        """Give the candidate another model's weights; where entries don't correspond, construct it anew under
        `seed`."""
        self.bench.write_weights(model)
        if self.mapping.complete:
            self._copy_weights()
        else:
            self.worker.ask({"op": "construct", **self._construction(seed)}, LOAD_SECONDS)

    def restore_weights(self) -> None:
        """Back to the bench's own weights."""
        self.change_weights(self.bench.model, self.bench.seed)

    def changed_state(self) -> State:
        """What is now in those entries that correspond to the buffers which the reference's forward changes, by the
        reference's names. Missing are entries that are gone, or have another shape or dtype."""
        pairs = [(theirs, ours) for theirs, ours in self.mapping.pairs if ours in self.bench.problem.changing]
        if not pairs:
            return {}
        self.bench.synchronize()
        reply = self.worker.run({"op": "state", "names": [theirs for theirs, _ in pairs], "landing": 0}, LOAD_SECONDS)
        self.bench.synchronize()
        known = self.bench.model.state_dict()
        try:
            views = [tensor_at(self.bench.arenas["landing"], place.model_dump()) for place in reply.tensors]
            values = list(unflatten(reply.outputs, views))
            found = [(ours, value) for (_, ours), value in zip(pairs, values, strict=True) if value is not None]
            return {n: v.clone() for n, v in found if (v.shape, v.dtype) == (known[n].shape, known[n].dtype)}
        except (AttributeError, LookupError, RecursionError, RuntimeError, TypeError, ValueError) as error:
            raise _forged() from error

    def digests(self) -> dict[str, str]:
        """Hashes of the values of the program's state, as its process says."""
        found = self.worker.ask({"op": "digests"}, LOAD_SECONDS).get("digests")
        if not isinstance(found, dict):
            raise _forged()
        return {str(name): str(value) for name, value in found.items()}

    def profile(self, trial: Trial, seed: int | None) -> ownership.Profile:
        """Whose code a forward's time goes to."""
        places = self.bench.write_inputs(trial.tensors, 0)
        self.bench.synchronize()
        request = {"op": "profile", "inputs": trial.spec, "tensors": places, "seed": seed, "seconds": PROFILE_SECONDS}
        reply = self.worker.ask(request, LOAD_SECONDS)
        try:
            return ownership.Profile.from_reply(reply, self.program)
        except (KeyError, TypeError, ValueError) as error:
            raise _forged() from error

    def _construction(self, seed: int) -> dict[str, Any]:
        init_spec, _ = flatten(self.bench.problem.init_args)
        return {
            "class": self.program.class_name,
            "init_args": init_spec,
            "init_tensors": self.bench.init_places,
            "seed": seed,
            "training": self.bench.training,
        }

    def initial_state(self) -> list[list[Any]]:
        """Entries that a forward changes, with the places of the values to start from."""
        changing = self.bench.problem.changing
        if not changing:
            return []
        return [[theirs, self.bench.weight_places[ours]] for theirs, ours in self.mapping.pairs if ours in changing]

    def _copy_weights(self) -> None:
        self.bench.synchronize()
        placed = [[theirs, self.bench.weight_places[ours]] for theirs, ours in self.mapping.pairs]
        if placed:
            self.worker.ask({"op": "weights", "entries": placed}, LOAD_SECONDS)


def _forged() -> CandidateFailed:
    return CandidateFailed(Verdict.CHEATING, observe("forged_reply", "a reply of a form that our worker never sends"))
