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
from tools.judge.client import Reply
from tools.judge.clocks import exchange_mismatch, series_mismatch, side_stream, work_ahead, work_behind
from tools.judge.failures import CandidateFailed
from tools.judge.hoarding import its_own_memory
from tools.judge.rounds import Rounds
from tools.judge.session import Session
from tools.judge.timing import LEAST_ROUNDS, Timer
from tools.types import Finding, Interval, PrecisionClass, SpeedClaim, Verdict

CLOSE = 0.15
"""A ratio within this of 1 is a close call."""


LOOKS = 3
"""Times that calls in a row must seem too slow: on a busy machine some are so by chance."""


@dataclass
class Measured:
    """What the timing of a program against the reference gave. `hot` are calls of the program and of the reference
    with warm caches; `null` is what the method can't tell apart from 1; `in_a_row` are the microseconds that a
    call of the program, and one of the reference, takes in a row of them."""

    rounds: Rounds
    hot: tuple[list[Reply], list[Reply]]
    speedup: Interval
    null: float
    claim: SpeedClaim
    mismatch: Finding | None
    ahead: Finding | None = None
    in_a_row: tuple[float, float] | None = None


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
    timer = Timer(bench, references, demanded, throttle, thorough=thorough)
    first = _in_process(timer, start(), references[0])
    if first.mismatch is not None or first.rounds.charge:
        # An honest exchange, or row, can be slow for as long as a process lives: what lies does so in the next one.
        first = _in_process(timer, start(), references[0])
    if first.claim is SpeedClaim.INDISTINGUISHABLE or abs(first.speedup.value - 1) > CLOSE:
        return first
    session = start()
    try:
        session.load()
        return _agreed(first, timer.run(session, first.rounds.clock, least=LEAST_ROUNDS // 2), bench.device)
    finally:
        session.worker.close()


def _in_process(timer: Timer, session: Session, reference: Session) -> Measured:
    try:
        session.load()
        with its_own_memory(session):
            found = _measure(timer, session, reference)
        found.ahead = work_ahead(session.timed.ahead, found.rounds) or work_behind(found.rounds)
        return found
    finally:
        session.worker.close()


def _measure(timer: Timer, session: Session, reference: Session) -> Measured:
    rounds = timer.run(session)
    hot, behind = _hot(timer, session, reference)
    if behind is not None:
        raise CandidateFailed(Verdict.CHEATING, behind)
    mismatch = exchange_mismatch(rounds, timer.bench.device)
    if mismatch is not None:
        return _lower(_judged(rounds.by_wall(), hot, mismatch), _judged(rounds, hot, mismatch))
    for _ in range(LOOKS):
        each = timer.series(session, rounds)
        mismatch = series_mismatch(rounds, each, timer.bench.device)
        if mismatch is None:
            measured = _judged(rounds, hot, None)
            measured.in_a_row = each
            return measured
    return _lower(_judged(timer.run(session, "series"), hot, mismatch), _judged(rounds, hot, mismatch))


def _hot(timer: Timer, session: Session, reference: Session) -> tuple[tuple[list[Reply], list[Reply]], Finding | None]:
    """Calls with warm caches, and what they show of work on another stream each time: once, other programs on the
    device may have delayed the one or the other."""
    looks = 0
    while True:
        hot, looks = (timer.hot(session), timer.hot(reference)), looks + 1
        behind = side_stream(*hot)
        if behind is None or looks == LOOKS:
            return hot, behind


def _lower(first: Measured, second: Measured) -> Measured:
    """Of two clocks that disagree the one that claims less: a candidate may be quick by the one and slow by the other
    as it likes."""
    return min(first, second, key=lambda measured: measured.speedup.value)


def _judged(rounds: Rounds, hot: tuple[list[Reply], list[Reply]], mismatch: Finding | None) -> Measured:
    reference = rounds.times("reference")
    speedup = statistics.ratio(reference, rounds.times("candidate"))
    null = statistics.null_spread(reference, rounds.times("second"))
    return Measured(rounds, hot, speedup, null, statistics.claim(speedup, null), mismatch)


def _agreed(first: Measured, second: Rounds, device: str) -> Measured:
    """Both processes together. How far they lie apart is another thing that the method can't tell from 1."""
    mismatch = first.mismatch
    if first.rounds.clock == "device" and (later := exchange_mismatch(second, device)) is not None:
        mismatch, first = later, _judged(first.rounds.by_wall(), first.hot, later)
    if first.rounds.clock == "wall":
        second = second.by_wall()
    other = _judged(second, first.hot, mismatch)
    found = _judged(first.rounds + second, first.hot, mismatch)
    apart = max(first.speedup.value / other.speedup.value, other.speedup.value / first.speedup.value) - 1
    found.null = max(first.null, other.null, apart)
    found.ahead, found.in_a_row = first.ahead, first.in_a_row
    same = first.claim is other.claim
    found.claim = statistics.claim(found.speedup, found.null) if same else SpeedClaim.INDISTINGUISHABLE
    return found
