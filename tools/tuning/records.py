"""What becomes of a variant: in the judge's sweep, and in the table that the model reads."""

from __future__ import annotations

from pydantic import Field

from tools.tuning.parameters import Value
from tools.types import Finding, Interval, Record, Verdict


class SweepRow(Record):
    """One variant in a sweep. Times in microseconds.

    `verdict` is None where the quick check found nothing against it, which makes it no correct kernel yet. `rungs` is
    how many rounds of the elimination it was timed in: what was timed in more has beaten the others.
    """

    verdict: Verdict | None = None
    finding: Finding | None = None
    candidate_us: Interval | None = None
    speedup: Interval | None = Field(default=None, description="reference over variant, from the same rounds")
    samples: int = 0
    rungs: int = 0


class TuneRow(Record):
    """One variant of a tuned kernel from its values to its time.

    `values` of the source as it was sent are as written there, where they are not in the space. `kernel` is the id of
    a variant that went through the full check; then `verdict` is that check's. Without one, `verdict` is what ended
    it, or None.
    """

    values: dict[str, Value]
    as_sent: bool = False
    built: bool
    problem: str | None = Field(default=None, description="what is wrong with it, in one line")
    verdict: Verdict | None = None
    candidate_us: Interval | None = None
    speedup: Interval | None = None
    samples: int = 0
    rungs: int = 0
    kernel: str | None = None
