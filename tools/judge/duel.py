"""A program against the reference: timed in one process, and a close call once more in another.

Two processes that run the same code can lie some percent apart, by where their memory happens to lie. The two processes
of the reference show that for one pair; a program that seems to win or lose by little is therefore timed again in a
fresh process, and only what both say is claimed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tools.judge import statistics
from tools.judge.bench import Bench
from tools.judge.client import CandidateFailed, Reply
from tools.judge.session import Session
from tools.judge.timing import Rounds, Timer, clock_mismatch, side_stream
from tools.types import Finding, Interval, PrecisionClass, SpeedClaim, Verdict

CLOSE = 0.15
"""A ratio within this of 1 is a close call."""


@dataclass
class Measured:
    """What the timing of a program against the reference gave. `hot` are calls of the program and of the reference
    with warm caches; `null` is what the method can't tell apart from 1."""

    rounds: Rounds
    hot: tuple[list[Reply], list[Reply]]
    speedup: Interval
    null: float
    claim: SpeedClaim
    mismatch: Finding | None


def duel(
    bench: Bench,
    start: Callable[[], Session],
    references: tuple[Session, Session],
    demanded: PrecisionClass | None,
    throttle: Callable[[], str],
    *,
    thorough: bool = False,
) -> Measured:
    """`start` gives a fresh process for the program each time. Raises CandidateFailed when a timed call fails, gives
    another output, or leaves work behind."""

    def once() -> Measured:
        session = start()
        try:
            session.load()
            timer = Timer(bench, session, references, demanded, throttle, thorough=thorough)
            rounds = timer.run()
            hot = timer.hot("candidate"), timer.hot("reference")
        finally:
            session.worker.close()
        behind = side_stream(*hot)
        if behind is not None:
            raise CandidateFailed(Verdict.CHEATING, behind)
        mismatch = clock_mismatch(rounds)
        return _measured(rounds if mismatch is None else rounds.by_wall(), hot, mismatch)

    first = once()
    if first.claim is SpeedClaim.INDISTINGUISHABLE or abs(first.speedup.value - 1) > CLOSE:
        return first
    return _agreed(first, once())


def _measured(rounds: Rounds, hot: tuple[list[Reply], list[Reply]], mismatch: Finding | None) -> Measured:
    reference = rounds.column("reference")
    speedup = statistics.ratio(reference, rounds.column("candidate"))
    null = statistics.null_spread(reference, rounds.column("second"))
    return Measured(rounds, hot, speedup, null, statistics.claim(speedup, null), mismatch)


def _agreed(first: Measured, second: Measured) -> Measured:
    """Both together. How far the two processes lie apart is another thing that the method can't tell from 1."""
    mismatch, rounds = first.mismatch or second.mismatch, first.rounds + second.rounds
    # Where one process is timed by the judge's clock, so is the other.
    found = _measured(rounds if mismatch is None else rounds.by_wall(), second.hot, mismatch)
    apart = max(first.speedup.value / second.speedup.value, second.speedup.value / first.speedup.value) - 1
    found.null = max(first.null, second.null, apart)
    same = first.claim is second.claim
    found.claim = statistics.claim(found.speedup, found.null) if same else SpeedClaim.INDISTINGUISHABLE
    return found
