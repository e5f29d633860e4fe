"""The correctness check: one candidate through every trial, stopping at the first that it fails.

The order is: the problem's own inputs (fresh secret seeds, alternating between two places in memory), one element
changed in place, identical runs compared bit by bit, two outputs held at once, inputs that arrive late on the stream,
other kinds of inputs, other weights, buffers that forward changes, and where the time goes. On CUDA the whole check
runs in a process with a guarded, poisoned allocator; timing uses another one.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from tools.judge import inputs as kinds
from tools.judge import ownership, variants
from tools.judge.bench import Bench
from tools.judge.client import Reply
from tools.judge.compare import Comparison, collect, compare
from tools.judge.errors import identical
from tools.judge.failures import CandidateFailed, violation
from tools.judge.findings import observe
from tools.judge.hoarding import its_own_memory
from tools.judge.outcome import Failed, Outcome, Rules
from tools.judge.repeats import POISONS, held_output, identical_runs, late_inputs
from tools.judge.session import Session
from tools.judge.state_check import state_after
from tools.judge.timed_outputs import is_summary
from tools.judge.trial import Trial
from tools.judge.weights import vary_constants
from tools.types import Finding, Verdict

OWN_TRIALS = 5
OUTLIERS = 6
"""In pairs (`variants.special`)."""

JUST_ABOVE = 4.0
"""An error no larger than this many times the limit may be within it by luck, and beyond it on the next inputs."""


class Check:
    """One candidate's check. `session` is the candidate loaded in a worker."""

    def __init__(self, bench: Bench, session: Session, rules: Rules) -> None:
        self.bench = bench
        self.session = session
        self.rules = rules
        self.outcome = Outcome()
        self._previous: list[torch.Tensor] = []

    def run(self) -> Outcome:
        """All steps; never raises for anything that the candidate does."""
        steps = [
            self._own,
            self._one_element,
            partial(identical_runs, self),
            partial(held_output, self),
            partial(late_inputs, self),
            self._special,
            self._weights,
            partial(state_after, self),
            self._profile,
        ]
        if self.rules.allclose is not None:
            steps = [self._own, self._profile]
        try:
            self.session.load()
            self.outcome.weights = self.session.mapping.how
            with its_own_memory(self.session):
                for step in steps:
                    step()
            self.outcome.verdict = Verdict.CORRECT
        except CandidateFailed as failed:
            self._decide(failed.verdict, [failed.finding])
        except Failed as failed:
            self._decide(failed.verdict, failed.findings)
        tried = self.session.worker.violations()
        if tried:
            self._decide(Verdict.SANDBOX_VIOLATION, [violation(tried)])
        return self.outcome

    def _decide(self, verdict: Verdict, findings: list[Finding]) -> None:
        self.outcome.verdict = verdict
        self.outcome.findings = findings + [f for f in self.outcome.findings if f not in findings]

    def execute(self, trial: Trial, slot: int, poison: int, **more: Any) -> Reply:
        """One forward on a trial; what may never happen on any run is checked here."""
        reply = self.session.run(trial.spec, trial.tensors, slot, poison=poison, seed=self._seed(trial), **more)
        if reply.changes:
            raise Failed(
                Verdict.CHEATING,
                observe("patched_functions", "replaces " + ", ".join(reply.changes[:5]), names=reply.changes[:10]),
            )
        self._flags(reply.flags)
        if reply.reseeded:
            raise Failed(Verdict.CHEATING, observe("rng_touched", "seeds PyTorch's random generator inside forward"))
        self._memory(trial, slot, reply)
        return reply

    def _seed(self, trial: Trial) -> int | None:
        return trial.seed if self.bench.uses_rng else None

    def _flags(self, flags: list[str]) -> None:
        if any("cudnn.enabled" in flag or "mkldnn.enabled" in flag for flag in flags):
            raise Failed(
                Verdict.CHEATING,
                observe("flags_flipped", "switches off the library that the reference uses: " + flags[0], flags=flags),
            )
        if flags and not any(f.code == "flags_flipped" for f in self.outcome.findings):
            self.outcome.findings.append(
                observe("flags_flipped", "changes global settings: " + ", ".join(flags), severity="note", flags=flags)
            )

    def _memory(self, trial: Trial, slot: int, reply: Reply) -> None:
        bench = self.bench
        bench.synchronize()
        if reply.damage and reply.damage[0]:
            blocks, size, offset = reply.damage
            where = f"{offset - size} bytes behind the end" if offset >= size else f"at byte {offset}"
            raise Failed(
                Verdict.WRONG_RESULT,
                observe(
                    "out_of_bounds_write",
                    f"writes outside of a tensor of {size} bytes: {where}",
                    blocks=blocks,
                    size=size,
                    offset=offset,
                ),
            )
        if not bench.guards_intact(slot):
            raise Failed(Verdict.WRONG_RESULT, observe("out_of_bounds_write", "writes outside of an input tensor"))
        changed = [i for i in self.session.changed_inputs(trial, slot) if i not in trial.may_change]
        if changed:
            aliases = any(place.aliases_input for place in reply.tensors)
            finding = observe(
                "input_mutated",
                f"changes its input {changed[0]}, which the reference leaves alone",
                input=changed[0],
                returns_it=aliases,
            )
            raise Failed(Verdict.WRONG_RESULT, finding)

    def compare_trial(self, trial: Trial, reply: Reply, slot: int) -> Comparison:
        """A reply held against its trial, and kept among the results."""
        found = compare(self.bench, trial, reply, slot, self.rules.demanded, allclose=self.rules.allclose)
        self.outcome.trials.append(found.result)
        return found

    def _own(self) -> None:
        """The problem's own distribution, five fresh draws."""
        for index in range(OWN_TRIALS):
            self.own_trial(index)

    def own_trial(self, index: int) -> None:
        """One draw of the problem's own inputs. Raises Failed or CandidateFailed."""
        trial, slot = self.bench.trial(kinds.OWN, index), index % 2
        reply = self.execute(trial, slot, POISONS[index % 2], own=index >= OWN_TRIALS // 2)
        found = self.compare_trial(trial, reply, slot)
        if not found.passed:
            raise self._explain(trial, found, slot, index)
        self.outcome.own.append(found)
        self._remember(trial, reply, slot)

    def _remember(self, trial: Trial, reply: Reply, slot: int) -> None:
        self._previous = [t.clone() for t in collect(self.bench, trial, reply, slot)]

    def _stale(self, found: Comparison) -> bool:
        """Whether the outputs are, bit for bit, those of the run before, whose inputs were others."""
        pairs = list(zip(found.outputs, self._previous, strict=False))
        return bool(pairs) and len(found.outputs) == len(self._previous) and all(identical(a, b) for a, b in pairs)

    def _explain(self, trial: Trial, found: Comparison, slot: int, index: int) -> Failed:
        """A wrong result on the problem's own inputs: is it the same every time, and does it depend on what was
        there?"""
        if index and self._stale(found):
            return Failed(Verdict.CHEATING, observe("stale_output", "returns the previous answer for other inputs"))
        if not found.outputs:
            return Failed(Verdict.WRONG_RESULT, *found.findings)
        first = [t.clone() for t in found.outputs]
        findings = list(found.findings)
        same_poison = self._differs(trial, slot, first, POISONS[index % 2])
        other_poison = self._differs(trial, slot, first, POISONS[(index + 1) % 2])
        if same_poison:
            findings.insert(0, observe("run_to_run", "identical runs give different results"))
            return Failed(Verdict.NONDETERMINISTIC, *findings)
        if other_poison:
            findings.insert(
                0,
                observe("poison_dependent", "the result changes with the contents of memory that nothing has written"),
            )
            return Failed(Verdict.NONDETERMINISTIC, *findings)
        if index and found.ratio > JUST_ABOVE:
            findings.append(
                observe(
                    "phase_dependent",
                    f"right on the first {index} of the problem's own inputs, wrong on the next",
                    calls=index,
                )
            )
        if found.reduced:
            return Failed(Verdict.REDUCED_PRECISION, ownership.precision_finding(self.bench, found), *findings[:1])
        return Failed(Verdict.WRONG_RESULT, *findings)

    def _differs(self, trial: Trial, slot: int, first: list[torch.Tensor], poison: int) -> bool:
        reply = self.execute(trial, slot, poison)
        again = collect(self.bench, trial, reply, slot) if len(reply.tensors) + len(trial.mutated) == len(first) else []
        return not all(identical(a, b) for a, b in zip(first, again, strict=len(again) == len(first))) or not again

    def _one_element(self) -> None:
        """The last inputs again at the same addresses, with one element changed: a remembered answer shows."""
        base, slot = self.bench.trial(kinds.OWN, OWN_TRIALS - 1), (OWN_TRIALS - 1) % 2
        trial, where = variants.one_element(self.bench, base)
        if trial is None or not trial.sound:
            return
        if all(identical(a, b) for a, b in zip(trial.reference, base.reference, strict=True)):
            return
        found = self.compare_trial(trial, self.execute(trial, slot, POISONS[0]), slot)
        if found.passed:
            return
        if self._stale(found):
            finding = observe(
                "stale_output", f"returns the previous answer although {where} has changed", changed=where
            )
            raise Failed(Verdict.CHEATING, finding)
        raise Failed(Verdict.WRONG_RESULT, *found.findings)

    def _special_trials(self) -> list[tuple[str, int]]:
        """Kinds of inputs, each with its trial's index. An outlier is put at several places where outputs sum a lot
        up: whoever leaves a part out misses it as often as that part is large."""
        first = self.bench.trial(kinds.OWN, 0)
        exact = any(not t.is_floating_point() for t in first.reference)
        after = OWN_TRIALS + len(kinds.SPECIAL) + 1
        after += after % 2  # a pair begins at an even number
        found = [
            (kind, OWN_TRIALS + position)
            for position, kind in enumerate(kinds.SPECIAL)
            if kind != kinds.HUGE and not (exact and kind in kinds.TIED)
        ]
        return found + [(kinds.HUGE, after + i) for i in range(OUTLIERS if is_summary(first) else 0)]

    def _special(self) -> None:
        """Inputs that the problem did not ask for, where the reference is sound on them."""
        for position, (kind, index) in enumerate(self._special_trials()):
            trial = self.bench.trial(kind, index)
            if not trial.sound:
                continue
            found = self.compare_trial(trial, self.execute(trial, position % 2, POISONS[position % 2]), position % 2)
            if not found.passed:
                if self._stale(found):
                    raise Failed(
                        Verdict.CHEATING,
                        observe("stale_output", "returns the previous answer for other inputs"),
                    )
                code = "fails_on_" + {
                    "scaled_up": "scaled",
                    "scaled_down": "scaled",
                    "shifted_down": "shifted",
                    "shifted_up": "shifted",
                    kinds.FAR: "shifted",
                    "one_large": "uneven",
                    kinds.HUGE: "uneven",
                }.get(kind, kind)
                finding = observe(
                    code, f"right on the problem's own inputs, wrong when they are {kind.replace('_', ' ')}", kind=kind
                )
                raise Failed(Verdict.WRONG_RESULT, finding, *found.findings)

    def _weights(self) -> None:
        """Other weights: copied over the old ones where entries correspond, else by construction under another seed."""
        if not self.bench.model.state_dict():
            return
        index = OWN_TRIALS + len(kinds.SPECIAL)
        seed = self.bench.seed_of(index) if self.session.mapping.complete else self.bench.seed + 1
        other = self.bench.problem.build(seed)
        if self.session.mapping.complete:
            vary_constants(other, self.bench.model, seed)
        base = self.bench.trial(kinds.OWN, 0)
        trial = self.bench.compute("weights", base.seed, base.spec, base.tensors, other)
        if not trial.sound or all(identical(a, b) for a, b in zip(trial.reference, base.reference, strict=True)):
            return
        self.session.change_weights(other, seed)
        found = self.compare_trial(trial, self.execute(trial, 0, POISONS[0]), 0)
        self.session.restore_weights()
        if not found.passed:
            finding = observe(
                "stale_weights",
                "wrong after its weights were changed: they are baked in or remembered from construction",
            )
            raise Failed(Verdict.WRONG_RESULT, finding, *found.findings)

    def _profile(self) -> None:
        """Whose code runs: a candidate none of whose own kernels ever runs is no kernel."""
        profile = self.session.profile(self.bench.trial(kinds.OWN, 0), self._seed(self.bench.trial(kinds.OWN, 0)))
        self.outcome.own_share = profile.share
        finding = profile.verdict(self.rules.require_own_kernels)
        if finding is not None:
            raise Failed(Verdict.CHEATING, finding)
