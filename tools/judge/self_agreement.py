"""The reference held against itself: is it finite, the same when run or constructed again, exact and fast enough?"""

from __future__ import annotations

import copy
import dataclasses

import torch

from tools.judge import trivial
from tools.judge.errors import identical, measure
from tools.judge.examination import Examination
from tools.judge.limits import floor_limit
from tools.judge.state_check import comparable
from tools.judge.trial import INACCURATE, Trial

SLOW_DRAW_SECONDS, SLOW_FORWARD_SECONDS = 3.0, 10.0


def finite(exam: Examination) -> None:
    """NaN and infinity in what the reference returns, and where the oracle has them."""
    trial = exam.first
    total = sum(trial.reference[i].numel() for i in exam.outputs)
    bad = sum(trivial.not_finite(trial.reference[i]) for i in exam.outputs)
    unlike = sum(trial.errors[i].unsound for i in exam.outputs)
    if not bad and not unlike:
        return
    summary = f"{bad} of {total} elements of the reference are NaN or infinite on the problem's own inputs"
    hopeless = any(not exam.admits_output(trial, i, trial.reference[i]) for i in exam.outputs)
    if unlike:
        summary += f"; in {unlike} places an fp64 evaluation is not, so that no honest kernel can be told right"
    elif hopeless:
        summary += ", which no answer can equal under a plain allclose"
    exam.note("reference_not_finite", "error" if hopeless else "warning", summary, not_finite=bad, unlike_fp64=unlike)


def again(exam: Examination) -> None:
    """The reference once more, and once more constructed, has to pass for its own candidate."""
    bench, trial = exam.bench, exam.first
    fresh = bench.problem.build(bench.seed)
    fresh.load_state_dict(copy.deepcopy(bench.model.state_dict()))
    for model, how in ((bench.model, "run twice on the same inputs"), (fresh, "constructed twice")):
        outputs = exam.run_reference(model, trial)
        if exam.hopeless or all(identical(outputs[i], trial.reference[i]) for i in exam.outputs):
            continue
        if not all(_rounding(exam, trial, i, outputs[i]) for i in exam.outputs):
            summary = (
                f"the reference, {how}, does not agree with itself: it depends on something besides its inputs and "
                "weights (a generator that is not torch's, a counter, the time, a race)"
            )
            exam.note("reference_nondeterministic", "error", summary, how=how)
        else:
            summary = f"the reference, {how}, differs from itself in its last bits"
            exam.note("reference_run_to_run", "note", summary, how=how)
        return


def _rounding(exam: Examination, trial: Trial, i: int, output: torch.Tensor) -> bool:
    """Whether two runs differ by no more than another order of summation makes. The floor can't say: where the
    reference is not deterministic it was measured with that."""
    if not output.is_floating_point():
        return torch.equal(output, trial.reference[i])
    found = measure(output, trial.reference[i].double())
    exact = dataclasses.replace(exam.bench.floor, rms=0.0, maximum=0.0)
    return found.unsound == 0 and found.rms <= 10 * floor_limit(exact, found, output.dtype).rms


def arithmetic(exam: Examination) -> None:
    """How the expected outputs were come by, and how far the reference is from them."""
    if exam.bench.uses_rng:
        summary = (
            "forward draws random numbers: the generators are seeded alike before each call, and only a "
            "candidate that draws the same numbers in the same order can be right"
        )
        exam.note("reference_random", "note", summary)
    names = [exam.first.state[i].name for i in comparable(exam.bench, exam.first)]
    if names and exam.rules.allclose is None:
        which = ", ".join(names[:6]) + ", …" * (len(names) > 6)
        summary = f"forward changes buffers ({which}), and what it leaves there is compared too"
        exam.note("reference_state", "note", summary, buffers=names[:20])
    if not exam.bench.uses_rng and exam.bench.oracle == "fp32":
        summary = "the reference can't be evaluated in fp64 here: candidates are held against strict fp32"
        exam.note("oracle_fp32", "note", summary)
    errors = [e for e in exam.first.errors if e.scale > 0 and not e.unsound]
    relative = max((e.relative for e in errors), default=0.0)
    if relative >= INACCURATE and not exam.hopeless and exam.rules.allclose is None:
        summary = f"the reference itself is off its fp64 evaluation by {relative:.2g} of the output's RMS"
        exam.note("reference_inaccurate", "warning", summary, relative_error=relative)


def speed(exam: Examination) -> None:
    """Whether drawing inputs and one forward are quick enough to be repeated."""
    seconds = exam.bench.problem.draw_seconds
    if seconds > SLOW_DRAW_SECONDS:
        summary = f"get_inputs() takes {seconds:.1f} s, and a check draws more than a dozen times"
        exam.note("slow_inputs", "warning", summary, seconds=seconds)
    if exam.seconds > SLOW_FORWARD_SECONDS:
        summary = (
            f"one forward of the reference takes {exam.seconds:.1f} s here, and a check needs dozens: use --size small "
            "or smaller sizes"
        )
        exam.note("reference_too_slow", "error", summary, seconds=exam.seconds)
