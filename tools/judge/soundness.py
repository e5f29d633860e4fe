"""Is a verdict on this problem worth anything?

Answers that need no work are held against the judge's own rule on the problem's own inputs, and what gets through
there on the other inputs of a check. Where every output can be had that way, `correct` says nothing, and the problem
is not judgeable. The reference is held against itself besides: run again, constructed again, with other weights.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch

from tools.judge import self_agreement, trivial
from tools.judge.bench import Bench
from tools.judge.check import Rules
from tools.judge.errors import identical
from tools.judge.examination import Examination
from tools.judge.trial import Trial
from tools.judge.trivial import Answer
from tools.types import Soundness

TOLERANCES = (1e-4, 1e-2)
MOST_WEIGHTS = 12


def examine(bench: Bench, rules: Rules) -> Soundness:
    """Whether the problem can be judged under `rules`, with all that was found. Runs the reference a dozen times."""
    exam = Examination(bench, rules)
    if not exam.outputs:
        exam.note(
            "no_output", "error", "the reference returns no tensor with an element in it: return one from Model.forward"
        )
    else:
        self_agreement.finite(exam)
        self_agreement.again(exam)
        if not exam.hopeless:
            _trivial(exam)
            _weights(exam)
        self_agreement.arithmetic(exam)
        self_agreement.speed(exam)
    return Soundness(judgeable=not exam.hopeless, notes=exam.notes)


def _trivial(exam: Examination) -> None:
    """Which outputs can be had without work, on the problem's own inputs and on all that a check tries."""
    answers = trivial.answers(exam.first, exam.second)
    own = {i: [a for a in answers if _both(exam, a, i)] for i in exam.outputs}
    left = {i: list(found) for i, found in own.items()}
    caught = _caught_elsewhere(exam, left)
    hopeless = all(left.values())
    for i, answer, also in _simplest(left):
        rule = "a plain allclose at 1e-4" if exam.rules.allclose else "this judge"
        summary = f"{answer.words} passes {rule}{_for(exam, i)}, whatever the inputs"
        exam.note(answer.code, "error" if hopeless else "warning", summary, also=also)
    for i, answer, also in _simplest({i: found for i, found in own.items() if not left[i]}):
        summary = (
            f"{answer.words} passes on the problem's own inputs{_for(exam, i)}; only other inputs, which the judge "
            f"tries too, tell it apart ({', '.join(caught)})"
        )
        exam.note(answer.code, "warning", summary, also=also, caught_by=caught)
    if not hopeless and exam.rules.allclose is None:
        _plain(exam, answers)


def _for(exam: Examination, outputs: list[int]) -> str:
    if len(outputs) == len(exam.outputs):
        return ""
    return f" for output {', '.join(map(str, outputs))} (of {len(exam.first.reference)})"


def _both(exam: Examination, answer: Answer, i: int) -> bool:
    return all(_passes(exam, answer, trial, i) for trial in (exam.first, exam.second))


def _passes(exam: Examination, answer: Answer, trial: Trial, i: int) -> bool:
    output = answer.give(trial, i)
    return output is not None and exam.admits_output(trial, i, output)


def _caught_elsewhere(exam: Examination, passing: dict[int, list[Answer]]) -> list[str]:
    """Drop from `passing` what fails on the other inputs of a check; the names of those that told."""
    told: list[str] = []
    trials = exam.other_trials()
    while any(passing.values()) and (found := next(trials, None)) is not None:
        kind, trial = found
        before = sum(map(len, passing.values()))
        for i, candidates in passing.items():
            passing[i] = [a for a in candidates if _passes(exam, a, trial, i)]
        if sum(map(len, passing.values())) < before:
            told.append(kind)
    return told


def _plain(exam: Examination, answers: list[Answer]) -> None:
    """What a plain allclose against the reference would let through: for the reader, no matter of this judge."""
    for tolerance in TOLERANCES:
        blind = [a.words for a in answers if all(_close(exam, a, i, tolerance) for i in exam.outputs)]
        if blind:
            summary = f"a plain allclose at {tolerance:g} is passed by {', or by '.join(blind)}"
            exam.note("plain_allclose_blind", "note", summary, tolerance=tolerance, passing=blind)
            return


def _close(exam: Examination, answer: Answer, i: int, tolerance: float) -> bool:
    output = answer.give(exam.first, i)
    return output is not None and trivial.close(output, exam.first.reference[i], tolerance, tolerance)


def _weights(exam: Examination) -> None:
    """The reference with other weights must give another answer."""
    if exam.hopeless or not any(True for _ in exam.bench.model.parameters()):
        return
    other = exam.other_model()
    unchanged, where = True, "own"
    trials = ((kind, t) for kind, t in exam.other_trials() if kind != "other weights")
    found: tuple[str, Trial] | None = ("own", exam.first)
    while found is not None:
        where, trial = found
        outputs = exam.try_reference(other, trial)
        if outputs is None:
            found = next(trials, None)
            continue
        if not all(exam.admits_output(trial, i, outputs[i]) for i in exam.outputs):
            if where != "own":
                summary = f"on the problem's own inputs the weights hardly matter; only on others do they ({where})"
                exam.note("weights_irrelevant", "warning", summary)
            else:
                _each_weight(exam, other)
            return
        unchanged &= all(identical(outputs[i], trial.reference[i]) for i in exam.outputs)
        found = next(trials, None)
    if unchanged:
        summary = "the weights change no bit of the output: they are not used, or what they do is lost on the way"
        exam.note("weights_irrelevant", "warning", summary)
    else:
        summary = "the answer with other weights passes: a kernel that leaves out what uses them is not told apart"
        exam.note("weights_irrelevant", "error", summary)


def _each_weight(exam: Examination, other: torch.nn.Module) -> None:
    """Which weights could each be left out: their effect cancels, or is lost beside that of the others."""
    values = dict(other.named_parameters())
    if not 1 < len(values) <= MOST_WEIGHTS:
        return
    lost: list[str] = []
    for name in values:
        model = copy.deepcopy(exam.bench.model)
        with torch.no_grad():
            model.get_parameter(name).copy_(values[name])
        outputs = exam.try_reference(model, exam.first)
        if outputs is not None and all(exam.admits_output(exam.first, i, outputs[i]) for i in exam.outputs):
            lost.append(name)
    if lost:
        summary = f"other values of {', '.join(lost)} alone change no output by more than the judge allows"
        exam.note("weights_without_effect", "note", summary, weights=lost)


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
