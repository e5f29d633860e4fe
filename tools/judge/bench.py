"""What the judge keeps for one problem on one device: models, shared buffers, and trials with their expected outputs.

A trial is computed once per kind and seed and kept while memory allows, so a second candidate pays for its own run
and the comparison alone.
"""

from __future__ import annotations

import copy
import dataclasses
import hashlib
import secrets
import time
from collections import OrderedDict
from typing import Any, Literal

import torch

from problems import ProblemError
from tools.judge import limits as rule
from tools.judge import module_state, variants
from tools.judge.deadline import deadline
from tools.judge.domain import Invariant, find
from tools.judge.inputs import FAR, OWN, SPECIAL
from tools.judge.limits import Limit
from tools.judge.oracle import DoubleOracle, exhausted
from tools.judge.preflight import check_size
from tools.judge.reference import Reference, oracle_model
from tools.judge.sensitivity import fp32_floor, steady_errors
from tools.judge.slots import end, input_slots
from tools.judge.trial import Trial, changes, is_sound
from tools.judge.truth import Job, expected
from tools.judge.variation import Repair
from tools.types import PrecisionClass
from tools.worker.arena import CANARY, Arena, Layout, guards, tensor_at
from tools.worker.seeding import states
from tools.worker.trees import flatten

Oracle = Literal["fp64", "fp64_cpu", "fp32"]
FORWARD_SECONDS = 120.0
CACHE_BYTES = {"cpu": 1 << 30, "cuda": 8 << 30}
LARGE_OUTPUT = 256 << 20
"""Bytes of output from which device memory is worth counting before each run."""


class Bench:
    """The problem set up for judging. Raises ProblemError when it can't be."""

    def __init__(self, source: str, size: str, device: Literal["cuda", "cpu"]) -> None:
        self.device: Literal["cuda", "cpu"] = device
        self.tight = check_size(source, size, device)
        """Whether memory is too short for keeping expected outputs in fp64."""

        self.source = source
        self.problem = Reference(source, size, device)
        self.seed = secrets.randbits(31)
        """Seeds the construction of both models; known to the worker, as KernelBench has it."""

        self._secret = secrets.token_bytes(16)
        self.landing_bytes = self.draw_bytes = 0
        self._prepare()
        first = self.trial(OWN, 0)
        self.landing_layout, self.landing_bytes = self._layout_outputs(first)
        self.slots, self.draw_bytes = input_slots(first.tensors, self.landing_bytes, self.device)
        self.arenas = self._create_arenas()

    def _prepare(self, reduction: int = 1) -> None:
        """The model, its oracle and the precision floor, for the inputs and weights that hold now."""
        self.model = self.problem.build(self.seed)
        self.training = self.model.training
        self.oracle: Oracle = "fp64"
        self.oracle_model = oracle_model(self.model)
        self.double = DoubleOracle(self.problem)
        self.double.tight = self.tight
        self.mutates = False
        self.reference_seconds = 0.0
        self._trials: OrderedDict[tuple[str, int], Trial] = OrderedDict()
        self.usual: list[float] = []
        self._domain: list[Invariant | None] | None = None
        self.problem.changing = ()
        self.silent: list[bool] = []
        self.uses_rng = self._first_forward()
        first = self.trial(OWN, 0)
        self.nans, self.usual = first.nans, [e.relative for e in first.errors]
        self.silent = [e.scale == 0 for e in first.errors]  # zero everywhere: no error can be measured on them
        self.floor = dataclasses.replace(fp32_floor(self, first), reduction=reduction)

    def adopt(self, repair: Repair | None) -> None:
        """Go on with other inputs and weights of the same shapes; None goes back to the problem's own."""
        self.problem.repair = repair
        self._prepare(self.floor.reduction)
        self.write_weights(self.model)

    def set_reduction(self, length: int) -> None:
        """The longest sum of the problem, which decides what honest fp32 accumulation may cost."""
        self.floor = dataclasses.replace(self.floor, reduction=max(length, 1))

    def seed_of(self, index: int) -> int:
        """The secret seed of trial `index`: unknown to every candidate, also to one that has found another's by trying
        them all."""
        return int.from_bytes(hashlib.blake2b(str(index).encode(), key=self._secret, digest_size=7).digest())

    def refresh_seeds(self) -> None:
        """New secret seeds, for the final confirmation."""
        self._secret = secrets.token_bytes(16)
        self._trials.clear()

    def trial(self, kind: str, index: int) -> Trial:
        """The trial of that kind and index, computed or kept."""
        key = (kind, index)
        found = self._trials.get(key)
        if found is None:
            self._forget_for_trial()
            if kind == OWN:
                seed = self.seed_of(index)
                found = self.compute(kind, seed, *self.problem.inputs(seed))
            else:
                found = variants.special(self, kind, index)
            self._keep(key, found)
        return found

    @property
    def domain(self) -> list[Invariant | None]:
        """For each input tensor what all draws of it have in common by construction."""
        if self._domain is None:
            self._domain = find([self.trial(OWN, i).tensors for i in range(2)])
        return self._domain

    def compute(
        self,
        kind: str,
        seed: int,
        spec: dict[str, Any],
        tensors: list[torch.Tensor],
        model: torch.nn.Module | None = None,
    ) -> Trial:
        """Reference and oracle outputs on the given inputs; `model` replaces the bench's own (other weights). What is
        not the problem's own and refused by its reference, or answered in another shape, is an unsound trial."""
        try:
            found = self._compute(kind, seed, spec, tensors, model)
        except (ProblemError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception as error:
            if kind == OWN or exhausted(error):
                raise
            return Trial.refusal(kind, seed, spec, tensors)
        return found if kind == OWN or self.problem.usual(found.returned) else found.unlike()

    def _compute(
        self, kind: str, seed: int, spec: dict[str, Any], tensors: list[torch.Tensor], model: torch.nn.Module | None
    ) -> Trial:
        own = model is None
        model = self.model if model is None else model
        oracle = self.oracle_model if own else oracle_model(model)
        given = [t.clone(memory_format=torch.preserve_format) if self.mutates else t for t in tensors]
        versions = [t._version for t in given]
        rng = seed if self.uses_rng else None
        began = time.monotonic()
        outputs, reference = self.problem.run(model, spec, given, seed=rng)
        after = dict(self.problem.after)
        if kind == OWN:
            self.problem.settle(reference)
        self.synchronize()
        self.reference_seconds = max(self.reference_seconds, time.monotonic() - began)
        changed = [i for i, t in enumerate(given) if t._version != versions[i]]
        if changed and not self.mutates:
            self.mutates = True
            fresh = self.problem.inputs(seed)[1]
            return self._compute(kind, seed, spec, fresh, None if own else model)
        returned = {t.data_ptr() for t in reference}
        mutated = [i for i in changed if given[i].data_ptr() not in returned]
        reference = [t.detach() for t in reference] + [given[i] for i in mutated]
        truth = expected(self, Job(model, oracle, spec, tensors, rng, mutated, reference, own=kind == OWN))
        state = changes(module_state.copied(model, self.problem.changing), after, self.problem.after)
        errors = truth.measured(reference)
        sound = is_sound(errors, reference, self.usual if kind in SPECIAL else None)
        made = Trial(kind, seed, spec, tensors, outputs, reference, truth, errors, sound, mutated, changed, state)
        made.model = None if own else oracle
        if kind == OWN and own:
            made.errors = steady_errors(self, made, reference, errors)
        return made

    def _first_forward(self) -> bool:
        """Whether the forward draws random numbers; buffers that it changes are noted on the way."""
        spec, tensors = self.problem.inputs(self.seed_of(0))
        before = states(self.device)
        slow = (
            f"one forward of the reference takes longer than {FORWARD_SECONDS:.0f} s here: use --size small or smaller "
            "sizes, or a faster device"
        )
        with deadline(FORWARD_SECONDS, slow):
            used = copy.deepcopy(self.model)
            self.problem.try_run(used, spec, [t.clone() for t in tensors])
        self.problem.changing = module_state.changed(self.model, used)
        return before != states(self.device)

    def limit(self, trial: Trial, output: int, demanded: PrecisionClass | None) -> Limit:
        """The limit on one output of a trial."""
        reference = trial.reference[output]
        if trial.kind in SPECIAL or (output < len(self.silent) and self.silent[output]):
            own = rule.own_limit(self.floor, trial.errors[output], reference.dtype, demanded)
            return rule.special_limit(own, trial.errors[output], as_a_whole=trial.kind == FAR)
        return rule.own_limit(self.floor, trial.errors[output], reference.dtype, demanded, output)

    def _layout_outputs(self, trial: Trial) -> tuple[list[dict[str, Any]], int]:
        layout = Layout()
        places = [layout.place(torch.empty(t.shape, dtype=t.dtype, device="meta")) for t in trial.reference]
        state = Layout()
        for change in trial.state:
            state.place(change.after)
        return places, max(layout.end, state.end)

    def _create_arenas(self) -> dict[str, Arena]:
        layout = Layout()
        self.weight_places = {name: layout.place(v) for name, v in self.model.state_dict().items()}
        _, init_tensors = flatten(self.problem.init_args)
        self.init_places = [layout.place(t) for t in init_tensors]
        arenas = {
            "inputs": Arena.create(self.device, end(self.slots)),
            "landing": Arena.create(self.device, self.landing_bytes + (1 << 16)),
            "weights": Arena.create(self.device, layout.end),
        }
        arenas["inputs"].bytes.fill_(CANARY)
        for place, tensor in zip(self.init_places, init_tensors, strict=True):
            tensor_at(arenas["weights"], place).copy_(tensor)
        self.write_weights(self.model, arenas["weights"])
        return arenas

    def write_weights(self, model: torch.nn.Module, arena: Arena | None = None) -> None:
        """Put a model's state into the weights buffer."""
        target = self.arenas["weights"] if arena is None else arena
        for name, value in model.state_dict().items():
            tensor_at(target, self.weight_places[name]).copy_(value)

    def write_inputs(self, tensors: list[torch.Tensor], slot: int) -> list[dict[str, Any]]:
        """Copy inputs into a slot of the shared buffer and return their places."""
        for tensor, place in zip(tensors, self.slots[slot], strict=True):
            tensor_at(self.arenas["inputs"], place).copy_(tensor)
        return self.slots[slot]

    def guards_intact(self, slot: int) -> bool:
        """Whether nothing was written around the inputs; repairs what was."""
        intact = True
        for place in self.slots[slot]:
            for band in guards(self.arenas["inputs"], place):
                if not bool((band == CANARY).all()):
                    intact = False
                    band.fill_(CANARY)
        return intact

    def poison_landing(self, byte: int) -> None:
        self.arenas["landing"].bytes.fill_(byte)

    def make_room(self, processes: int = 1, own: int = 0) -> None:
        """See that so many workers find room for a forward each, and the judge for `own` bytes: where the device's
        memory is short, kept trials and PyTorch's cached blocks go."""
        if self.device != "cuda" or self.landing_bytes < LARGE_OUTPUT:
            return
        needed = processes * (2 * self.landing_bytes + self.draw_bytes + (1 << 30)) + own
        if torch.cuda.mem_get_info()[0] < needed:
            torch.cuda.empty_cache()
        if torch.cuda.mem_get_info()[0] < needed:
            self._trials.clear()
            torch.cuda.empty_cache()

    def _forget_for_trial(self) -> None:
        """Where the next trial would not find room beside the kept ones, these go."""
        if self.device != "cuda" or self.landing_bytes < LARGE_OUTPUT:
            return
        # Inputs, the reference's outputs, and the oracle's at twice their size, where those are kept.
        needed = self.draw_bytes + (1 if self.tight else 3) * self.landing_bytes
        cached = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        if torch.cuda.mem_get_info()[0] + cached < needed:
            self._trials.clear()

    def synchronize(self) -> None:
        if self.device == "cuda":
            torch.cuda.synchronize()

    def _keep(self, key: tuple[str, int], trial: Trial) -> None:
        self._trials[key] = trial
        total = sum(t.bytes for t in self._trials.values())
        while total > CACHE_BYTES[self.device] and len(self._trials) > 1:
            _, dropped = self._trials.popitem(last=False)
            total -= dropped.bytes

    def close(self) -> None:
        for arena in self.arenas.values():
            arena.close()
