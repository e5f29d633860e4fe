"""Is a verdict on this problem worth anything?

Answers that need no work are held against the judge's own rule on the problem's own inputs, and what gets through
there on the other inputs of a check. Where every output can be had that way, `correct` says nothing, and the problem
is not judgeable. The reference is held against itself besides: run again, constructed again, with other weights.
"""

from __future__ import annotations

import copy
import dataclasses
import time
from collections.abc import Iterator
from typing import Literal

import torch

from tools.judge import inputs as kinds
from tools.judge import trivial
from tools.judge.bench import Bench, Trial
from tools.judge.check import OWN_TRIALS, Rules
from tools.judge.compare import admits
from tools.judge.errors import identical, measure
from tools.judge.findings import Fact, observe
from tools.judge.limits import floor_limit
from tools.judge.session import CALL_SECONDS
from tools.judge.trivial import Answer
from tools.judge.weights import vary_constants
from tools.types import Finding, Soundness

TOLERANCES = (1e-4, 1e-2)
SLOW_DRAW_SECONDS = 3.0
MOST_WEIGHTS = 12
INACCURATE = 0.05
"""Relative RMS error of a reference that says little about its own mathematics."""

Severity = Literal["error", "warning", "note"]


def examine(bench: Bench, rules: Rules) -> Soundness:
    """Whether the problem can be judged under `rules`, with all that was found. Runs the reference a dozen times."""
    return _Examination(bench, rules).run()


class _Examination:
    def __init__(self, bench: Bench, rules: Rules) -> None:
        self.bench = bench
        self.rules = rules
        self.first, self.second = bench.trial(kinds.OWN, 0), bench.trial(kinds.OWN, 1)
        self.outputs = [i for i, t in enumerate(self.first.reference) if t.numel()]
        self.seconds = 0.0
        self.notes: list[Finding] = []

    def run(self) -> Soundness:
        if self.outputs:
            self._finite()
            self._again()
            if not self._hopeless:
                self._trivial()
                self._weights()
            self._arithmetic()
            self._speed()
        else:
            self._note("no_output", "error", "the reference returns no tensor with an element in it")
        return Soundness(judgeable=not self._hopeless, notes=self.notes)

    @property
    def _hopeless(self) -> bool:
        return any(note.severity == "error" for note in self.notes)

    def _note(self, code: str, severity: Severity, summary: str, **observed: Fact) -> None:
        self.notes.append(observe(code, summary, severity, **observed))

    def _admits(self, trial: Trial, i: int, output: torch.Tensor) -> bool:
        if self.rules.allclose is not None:
            return trivial.close(output, trial.reference[i], *self.rules.allclose)
        if output.is_floating_point():
            # Most answers are plainly wrong at the very beginning, and need no look at the rest.
            limit = self.bench.limit(trial, i, self.rules.demanded)
            start = output.reshape(-1)[: trivial.HEAD].double(), trial.oracle[i].reshape(-1)[: trivial.HEAD].double()
            if bool(((start[0] - start[1]).abs() > limit.maximum).any()):
                return False
        return admits(self.bench, trial, i, output, self.rules.demanded)

    def _finite(self) -> None:
        """NaN and infinity in what the reference returns, and where the oracle has them."""
        trial = self.first
        total = sum(trial.reference[i].numel() for i in self.outputs)
        bad = sum(trivial.not_finite(trial.reference[i]) for i in self.outputs)
        unlike = sum(trial.errors[i].unsound for i in self.outputs)
        if not bad and not unlike:
            return
        summary = f"{bad} of {total} elements of the reference are NaN or infinite on the problem's own inputs"
        hopeless = any(not self._admits(trial, i, trial.reference[i]) for i in self.outputs)
        if unlike:
            summary += f"; in {unlike} places an fp64 evaluation is not, so that no honest kernel can be told right"
        elif hopeless:
            summary += ", which no answer can equal under a plain allclose"
        self._note(
            "reference_not_finite", "error" if hopeless else "warning", summary, not_finite=bad, unlike_fp64=unlike
        )

    def _again(self) -> None:
        """The reference once more, and once more constructed, has to pass for its own candidate."""
        bench, trial = self.bench, self.first
        fresh = bench.problem.build(bench.seed)
        fresh.load_state_dict(copy.deepcopy(bench.model.state_dict()))
        for model, how in ((bench.model, "run twice on the same inputs"), (fresh, "constructed twice")):
            outputs = self._reference(model, trial)
            if self._hopeless or all(identical(outputs[i], trial.reference[i]) for i in self.outputs):
                continue
            if not all(self._rounding(trial, i, outputs[i]) for i in self.outputs):
                summary = (
                    f"the reference, {how}, does not agree with itself: it depends on something besides its inputs and "
                    "weights (a generator that is not torch's, a counter, the time, a race)"
                )
                self._note("reference_nondeterministic", "error", summary, how=how)
            else:
                summary = f"the reference, {how}, differs from itself in its last bits"
                self._note("reference_run_to_run", "note", summary, how=how)
            return

    def _rounding(self, trial: Trial, i: int, output: torch.Tensor) -> bool:
        """Whether two runs differ by no more than another order of summation makes. The floor can't say: where the
        reference is not deterministic it was measured with that."""
        if not output.is_floating_point():
            return torch.equal(output, trial.reference[i])
        found = measure(output, trial.reference[i].double())
        exact = dataclasses.replace(self.bench.floor, rms=0.0, maximum=0.0)
        return found.unsound == 0 and found.rms <= 10 * floor_limit(exact, found, output.dtype).rms

    def _reference(self, model: torch.nn.Module, trial: Trial) -> list[torch.Tensor]:
        """The outputs of a model on a trial's inputs, those that it changes behind the others."""
        given = [t.clone(memory_format=torch.preserve_format) for t in trial.tensors]
        began = time.monotonic()
        seed = trial.seed if self.bench.uses_rng else None
        outputs = self.bench.problem.run(model, trial.spec, given, seed=seed)[1]
        self.bench.synchronize()
        self.seconds = time.monotonic() - began
        return [t.detach() for t in outputs] + [given[i] for i in trial.mutated]

    def _trivial(self) -> None:
        """Which outputs can be had without work, on the problem's own inputs and on all that a check tries."""
        answers = trivial.answers(self.first, self.second)
        own = {i: [a for a in answers if self._both(a, i)] for i in self.outputs}
        left = {i: list(found) for i, found in own.items()}
        caught = self._caught_elsewhere(left)
        hopeless = all(left.values())
        for i, answer, also in _simplest(left):
            rule = "a plain allclose at 1e-4" if self.rules.allclose else "this judge"
            summary = f"{answer.words} passes {rule}{self._for(i)}, whatever the inputs"
            self._note(answer.code, "error" if hopeless else "warning", summary, also=also)
        for i, answer, also in _simplest({i: found for i, found in own.items() if not left[i]}):
            summary = (
                f"{answer.words} passes on the problem's own inputs{self._for(i)}; only other inputs, which the judge "
                f"tries too, tell it apart ({', '.join(caught)})"
            )
            self._note(answer.code, "warning", summary, also=also, caught_by=caught)
        if not hopeless and self.rules.allclose is None:
            self._plain(answers)

    def _for(self, outputs: list[int]) -> str:
        if len(outputs) == len(self.outputs):
            return ""
        return f" for output {', '.join(map(str, outputs))} (of {len(self.first.reference)})"

    def _both(self, answer: Answer, i: int) -> bool:
        return all(self._passes(answer, trial, i) for trial in (self.first, self.second))

    def _passes(self, answer: Answer, trial: Trial, i: int) -> bool:
        output = answer.give(trial, i)
        return output is not None and self._admits(trial, i, output)

    def _caught_elsewhere(self, passing: dict[int, list[Answer]]) -> list[str]:
        """Drop from `passing` what fails on the other inputs of a check; the names of those that told."""
        told: list[str] = []
        trials = self._other_trials()
        while any(passing.values()) and (found := next(trials, None)) is not None:
            kind, trial = found
            before = sum(map(len, passing.values()))
            for i, candidates in passing.items():
                passing[i] = [a for a in candidates if self._passes(a, trial, i)]
            if sum(map(len, passing.values())) < before:
                told.append(kind)
        return told

    def _other_trials(self) -> Iterator[tuple[str, Trial]]:
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
        generator = torch.Generator(bench.device).manual_seed(first.seed + 7)
        changed, where = kinds.change_one_element(first.tensors, generator)
        if where:
            trial = bench.compute(kinds.ELEMENT, first.seed, first.spec, changed)
            if trial.sound:
                yield "one element changed", trial
        if bench.model.state_dict():
            trial = bench.compute("weights", first.seed, first.spec, first.tensors, self._other_model())
            if trial.sound:
                yield "other weights", trial

    def _other_model(self) -> torch.nn.Module:
        other = self.bench.problem.build(self.bench.seed + 1)
        vary_constants(other, self.bench.model, self.bench.seed)
        return other

    def _plain(self, answers: list[Answer]) -> None:
        """What a plain allclose against the reference would let through: for the reader, no matter of this judge."""
        for tolerance in TOLERANCES:
            blind = [a.words for a in answers if all(self._close(a, i, tolerance) for i in self.outputs)]
            if blind:
                summary = f"a plain allclose at {tolerance:g} is passed by {', or by '.join(blind)}"
                self._note("plain_allclose_blind", "note", summary, tolerance=tolerance, passing=blind)
                return

    def _close(self, answer: Answer, i: int, tolerance: float) -> bool:
        output = answer.give(self.first, i)
        return output is not None and trivial.close(output, self.first.reference[i], tolerance, tolerance)

    def _weights(self) -> None:
        """The reference with other weights must give another answer."""
        if self._hopeless or not any(True for _ in self.bench.model.parameters()):
            return
        other = self._other_model()
        unchanged, where = True, "own"
        trials = ((kind, t) for kind, t in self._other_trials() if kind != "other weights")
        found: tuple[str, Trial] | None = ("own", self.first)
        while found is not None:
            where, trial = found
            outputs = self._reference(other, trial)
            if not all(self._admits(trial, i, outputs[i]) for i in self.outputs):
                if where != "own":
                    summary = f"on the problem's own inputs the weights hardly matter; only on others do they ({where})"
                    self._note("weights_irrelevant", "warning", summary)
                else:
                    self._each_weight(other)
                return
            unchanged &= all(identical(outputs[i], trial.reference[i]) for i in self.outputs)
            found = next(trials, None)
        if unchanged:
            summary = "the weights change no bit of the output: they are not used, or what they do is lost on the way"
            self._note("weights_irrelevant", "warning", summary)
        else:
            summary = "the answer with other weights passes: a kernel that leaves out what uses them is not told apart"
            self._note("weights_irrelevant", "error", summary)

    def _each_weight(self, other: torch.nn.Module) -> None:
        """Which weights could each be left out: their effect cancels, or is lost beside that of the others."""
        values = dict(other.named_parameters())
        if not 1 < len(values) <= MOST_WEIGHTS:
            return
        lost: list[str] = []
        for name in values:
            model = copy.deepcopy(self.bench.model)
            with torch.no_grad():
                model.get_parameter(name).copy_(values[name])
            outputs = self._reference(model, self.first)
            if all(self._admits(self.first, i, outputs[i]) for i in self.outputs):
                lost.append(name)
        if lost:
            summary = f"other values of {', '.join(lost)} alone change no output by more than the judge allows"
            self._note("weights_without_effect", "note", summary, weights=lost)

    def _arithmetic(self) -> None:
        if self.bench.uses_rng:
            summary = (
                "forward draws random numbers: torch's generator is seeded alike before each call, and only a "
                "candidate that draws the same numbers in the same order can be right"
            )
            self._note("reference_random", "note", summary)
        elif self.bench.oracle == "fp32":
            summary = "the reference can't be evaluated in fp64 here: candidates are held against strict fp32"
            self._note("oracle_fp32", "note", summary)
        errors = [e for e in self.first.errors if e.scale > 0 and not e.unsound]
        relative = max((e.relative for e in errors), default=0.0)
        if relative >= INACCURATE and not self._hopeless and self.rules.allclose is None:
            summary = f"the reference itself is off its fp64 evaluation by {relative:.2g} of the output's RMS"
            self._note("reference_inaccurate", "warning", summary, relative_error=relative)

    def _speed(self) -> None:
        seconds = self.bench.problem.draw_seconds
        if seconds > SLOW_DRAW_SECONDS:
            summary = f"get_inputs() takes {seconds:.1f} s, and a check draws more than a dozen times"
            self._note("slow_inputs", "warning", summary, seconds=seconds)
        if self.seconds > CALL_SECONDS:
            summary = (
                f"one forward of the reference takes {self.seconds:.1f} s here, and a candidate's call is ended after "
                f"{CALL_SECONDS:.0f} s: use --size small or smaller sizes"
            )
            self._note("reference_too_slow", "error", summary, seconds=self.seconds)


def _simplest(passing: dict[int, list[Answer]]) -> Iterator[tuple[list[int], Answer, list[str]]]:
    """Outputs grouped by the simplest answer that passes for them, with what passes besides for all of the group."""
    groups: dict[str, list[int]] = {}
    for i, found in passing.items():
        if found:
            groups.setdefault(found[0].words, []).append(i)
    for outputs in groups.values():
        first = passing[outputs[0]][0]
        also = [a.words for a in passing[outputs[0]][1:] if all(a in passing[i] for i in outputs)]
        yield outputs, first, also
