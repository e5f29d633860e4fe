"""What an examination of a problem works on: its bench and rules, two of its own trials, and what was found so far."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Literal

import torch

from problems import ProblemError
from tools.judge import inputs as kinds
from tools.judge import trivial, variants
from tools.judge.bench import Bench
from tools.judge.check import OWN_TRIALS, Rules
from tools.judge.compare import admits
from tools.judge.findings import Fact, observe
from tools.judge.trial import Trial
from tools.judge.weights import vary_constants
from tools.types import Finding

Severity = Literal["error", "warning", "note"]


class Examination:
    """`outputs` are the indices of those that have elements, `seconds` what the last run of the reference took."""

    def __init__(self, bench: Bench, rules: Rules) -> None:
        self.bench = bench
        self.rules = rules
        self.first, self.second = bench.trial(kinds.OWN, 0), bench.trial(kinds.OWN, 1)
        self.outputs = [i for i, t in enumerate(self.first.reference) if t.numel()]
        self.seconds = 0.0
        self.notes: list[Finding] = []

    @property
    def hopeless(self) -> bool:
        """Whether something was found that makes a verdict say nothing."""
        return any(note.severity == "error" for note in self.notes)

    def note(self, code: str, severity: Severity, summary: str, **observed: Fact) -> None:
        """Add a finding."""
        self.notes.append(observe(code, summary, severity, **observed))

    def admits_output(self, trial: Trial, i: int, output: torch.Tensor) -> bool:
        """Whether the rule of this run lets `output` pass for output `i` of a trial."""
        if self.rules.allclose is not None:
            return trivial.close(output, trial.reference[i], *self.rules.allclose)
        if output.is_floating_point():
            # Most answers are plainly wrong at the very beginning, and need no look at the rest.
            limit = self.bench.limit(trial, i, self.rules.demanded)
            begins = trial.truth.beginning(i, trivial.HEAD).double()
            mine = output.reshape(-1)[: begins.numel()].double()
            if bool(((mine - begins).abs() > limit.maximum).any()):
                return False
        return admits(self.bench, trial, i, output, self.rules.demanded)

    def run_reference(self, model: torch.nn.Module, trial: Trial) -> list[torch.Tensor]:
        """The outputs of a model on a trial's inputs, those that it changes behind the others."""
        given = [t.clone(memory_format=torch.preserve_format) for t in trial.tensors]
        began = time.monotonic()
        seed = trial.seed if self.bench.uses_rng else None
        outputs = self.bench.problem.run(model, trial.spec, given, seed=seed)[1]
        self.bench.synchronize()
        self.seconds = time.monotonic() - began
        return [t.detach() for t in outputs] + [given[i] for i in trial.mutated]

    def try_reference(self, model: torch.nn.Module, trial: Trial) -> list[torch.Tensor] | None:
        """`run_reference` with a model other than the bench's; None where it refuses, or answers in another shape."""
        try:
            found = self.run_reference(model, trial)
        except (ProblemError, MemoryError, torch.OutOfMemoryError):
            raise
        except Exception:
            return None
        same = len(found) == len(trial.reference)
        return found if same and all(a.shape == b.shape for a, b in zip(found, trial.reference, strict=True)) else None

    def other_trials(self) -> Iterator[tuple[str, Trial]]:
        """The trials of a check besides the problem's own, where the reference is sound on them."""
        if self.rules.allclose is not None:
            return
        bench, first = self.bench, self.first
        exact = any(not t.is_floating_point() for t in first.reference)
        for position, kind in enumerate(kinds.SPECIAL):
            if exact and kind in kinds.TIED:
                continue
            trial = bench.trial(kind, OWN_TRIALS + position)
            if trial.sound:
                yield kind.replace("_", " "), trial
        changed = variants.one_element(bench, first)[0]
        if changed is not None and changed.sound:
            yield "one element changed", changed
        if bench.model.state_dict():
            trial = bench.compute("weights", first.seed, first.spec, first.tensors, self.other_model())
            if trial.sound:
                yield "other weights", trial

    def other_model(self) -> torch.nn.Module:
        """The reference with all weights other than its own."""
        other = self.bench.problem.build(self.bench.seed + 1)
        vary_constants(other, self.bench.model, self.bench.seed)
        return other
