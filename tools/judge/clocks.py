"""Does a worker's clock tell what the judge's own clock tells? And is the device idle when a call says that it is done?

None of it accuses: a busy machine can look the same. Where the clocks disagree, the judge's own one counts.
"""

from __future__ import annotations

import numpy as np

from tools.judge.client import Reply
from tools.judge.findings import observe
from tools.judge.rounds import EXCHANGE_SHARE, EXCHANGE_US, Rounds
from tools.types import Finding

HIDDEN_SHARE = {"cpu": 0.6, "cuda": 0.25}
HIDDEN_US = {"cpu": 20.0, "cuda": 5.0}
MOST_TIMES = 2.0
"""A call in a series, with warm caches, may take longer than a call by itself by this share and this much, but never so
many times as long: what a clock may hide is no licence for kernels that take less than that."""

MOST_BUSY = 2.0
"""So many times may the reference's calls take longer in a row for the candidate's to be forgiven the same. Beyond that
the two have not been disturbed alike, and one that was not could lie as much as the other one was."""

SLOWER_IN_A_ROW = 1.1
"""So many times the reference's time."""


def exchange_mismatch(rounds: Rounds, device: str) -> Finding | None:
    """Whether more time passes in the exchanges with the candidate than its clock accounts for.

    Both sides go through the same exchange, so what the judge's wall clock has beyond the worker's own time should be
    the same for both. Medians are compared, as the times are: a clock that lies in fewer calls gains as little.
    """
    reported = float(np.median(rounds.column("candidate", "us")))
    beyond = {side: float(np.median(rounds.beyond(side))) for side in rounds.walls}
    hidden = beyond["candidate"] - max(beyond["reference"], beyond["second"])
    if hidden <= EXCHANGE_SHARE * reported + EXCHANGE_US[device]:
        return None
    return _mismatch(
        reported, hidden, "at least {:.0f} us more pass by the judge's own clock: of both the lower speed-up counts"
    )


def series_mismatch(rounds: Rounds, each: tuple[float, float], device: str) -> Finding | None:
    """Whether a call in a series takes longer, by the judge's own clock, than the candidate says of a call by itself.

    `each` are microseconds a call, the candidate's and the reference's: on a machine that has become busy both take
    longer than before. A call by itself comes with cold caches, and waits for what a series hides; only a clock that
    lies is faster. Finds what is too little to show in an exchange. A forward that waits for the device looks the same
    where most of its time is the host's: behind a flush it can hide that, in a series it can't.
    """
    mine, theirs = each
    reported, usual = (float(np.median(rounds.column(side, "us"))) for side in ("candidate", "reference"))
    busy = min(max(1.0, theirs / usual), MOST_BUSY) if usual > 0 else 1.0
    most = min((1 + HIDDEN_SHARE[device]) * busy * reported + HIDDEN_US[device], MOST_TIMES * busy * reported)
    if mine <= most:
        return None
    text = "a call in a row of them takes {:.0f} us more by the judge's own clock: of both the lower speed-up counts"
    return _mismatch(reported, mine - reported, text)


def work_ahead(ahead: list[float], rounds: Rounds) -> Finding | None:
    """Whether threads of the candidate's own are at work before it is called, `ahead` us a call, or its code in the
    worker's threads. It is counted in."""
    reported = float(np.median(rounds.times("candidate")))
    usual = float(np.median(ahead)) if ahead else 0.0
    if rounds.before:
        summary = f"{rounds.before:.0f} us of its own are run while it is given inputs, before it is called: counted in"
        return observe("work_ahead", summary, severity="warning", ahead_us=round(rounds.before, 1))
    if usual <= max(50.0, 0.1 * reported):
        return None
    summary = f"its own threads run for {usual:.0f} us after its inputs are there and before it is called: counted in"
    return observe("work_ahead", summary, severity="warning", ahead_us=round(usual, 1))


def work_behind(rounds: Rounds) -> Finding | None:
    """Whether the answer is computed only when it is carried away, or now there and now elsewhere beside the call,
    which `rounds` have counted in."""
    behind = rounds.behind
    if not behind and not rounds.charge:
        return None
    summary = (
        f"its outputs take {behind:.0f} us longer to carry away than the reference's: counted in"
        if behind
        else f"{rounds.charge:.0f} us more pass beside its calls than beside the reference's: counted in"
    )
    return observe("work_behind", summary, severity="warning", behind_us=round(behind or rounds.charge, 1))


def side_stream(candidate: list[Reply], reference: list[Reply]) -> Finding | None:
    """Whether work goes on behind the candidate's back: the device is busy long after its stream has finished.

    From hot calls, each begun on an idle device: behind a flush, which the timed stream waits for and a stream of the
    candidate's own does not, such work would end before it is looked for.
    """
    reported = float(np.median([r.us for r in candidate]))
    own, usual = (float(np.median([r.drained_us - r.us for r in side])) for side in (candidate, reference))
    if own - usual <= max(20.0, 0.1 * reported):
        return None
    summary = f"the device goes on working for {own - usual:.0f} us after the timed stream is done"
    return observe("side_stream", summary, reported_us=round(reported, 1), behind_us=round(own - usual, 1))


def launch_bound(host_us: float, queued_us: float) -> Finding | None:
    """Whether the host takes longer to launch a call than the device to run it. A call by itself, or one of many, then
    takes the host's time; a captured graph is launched as one and takes about the device's."""
    if host_us <= max(1.2 * queued_us, queued_us + 5.0):
        return None
    summary = (
        f"launching a call takes the host {host_us:.0f} us, running it takes the device {queued_us:.0f} us: "
        "a CUDA graph of it would hide most of the difference"
    )
    observed = {"host_us": round(host_us, 1), "device_us": round(queued_us, 1)}
    return observe("launch_bound", summary, severity="note", **observed)


def slower_in_a_row(mine: float, theirs: float) -> Finding | None:
    """Whether a program that is faster by itself, on cold caches and with its code and its threads cold as well, is
    slower than the reference where calls follow each other."""
    if mine <= SLOWER_IN_A_ROW * theirs:
        return None
    summary = (
        f"faster in a call by itself, on cold caches; in a row of calls it takes {mine:.1f} us a call, and the "
        f"reference {theirs:.1f} us"
    )
    observed = {"us": round(mine, 1), "reference_us": round(theirs, 1)}
    return observe("slower_in_a_row", summary, severity="warning", **observed)


def _mismatch(reported: float, hidden: float, text: str) -> Finding:
    summary = f"reports {reported:.1f} us a call, but {text.format(hidden)}"
    return observe(
        "clock_mismatch", summary, severity="warning", reported_us=round(reported, 1), hidden_us=round(hidden, 1)
    )
