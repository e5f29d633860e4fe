"""Find inputs and weights under which a problem can be judged, where its own let an answer without work pass."""

from __future__ import annotations

from tools.judge.bench import Bench
from tools.judge.check import Rules
from tools.judge.findings import observe
from tools.judge.soundness import examine
from tools.judge.variation import REPAIRS, Repair
from tools.types import Finding, Soundness

OF_THE_MACHINE = ("slow_inputs", "reference_too_slow")
FLAWLESS = 3


def repair(bench: Bench, rules: Rules) -> tuple[Soundness, Finding | None]:
    """Put `bench` on the first repair under which nothing is amiss, else on the best of those that mend something.

    Returns what holds from then on, and the note that says what was done: None when nothing was amiss or nothing helps,
    so that the problem stays as it is.
    """
    found = examine(bench, rules)
    wrong = sorted((n for n in found.notes if _mendable(n)), key=lambda n: n.severity != "error")
    if not wrong:
        return found, None
    best: tuple[int, Repair | None, Soundness] = _quality(found), None, found
    for candidate in REPAIRS:
        try:
            bench.adopt(candidate)
            now = examine(bench, rules)
        except Exception:
            # Whatever the reference makes of values that it was not written for.
            continue
        if (quality := _quality(now)) > best[0]:
            best = quality, candidate, now
        if quality == FLAWLESS:
            break
    _, taken, now = best
    if bench.problem.repair is not taken:
        bench.adopt(taken)
    if taken is None:
        summary = (
            f"none of {len(REPAIRS)} other kinds of inputs and weights makes more of it: the problem stays as it is"
        )
        note = observe("not_repaired", summary, "note", tried=len(REPAIRS))
        return now.model_copy(update={"notes": [*now.notes, note]}), None
    done = f"judged and timed with {taken.words}"
    because = f"{done}. As the problem stands, {wrong[0].summary}"
    why = observe("inputs_repaired", because, "note", repair=taken.words, because=wrong[0].code)
    return now.model_copy(update={"notes": [why, *now.notes]}), observe("inputs_repaired", done, "note")


def _mendable(note: Finding) -> bool:
    return note.severity != "note" and note.code not in OF_THE_MACHINE


def _quality(found: Soundness) -> int:
    """0 not judgeable, 1 with warnings, 2 without, FLAWLESS when each weight shows besides."""
    if any(_mendable(n) for n in found.notes):
        return int(all(n.severity != "error" for n in found.notes if _mendable(n)))
    return 2 if any(n.code == "weights_without_effect" for n in found.notes) else FLAWLESS
