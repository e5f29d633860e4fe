"""What can go wrong with a process of the judge's, and whose fault it is."""

from __future__ import annotations

from typing import Any

from tools.judge.findings import observe
from tools.nursery import ExitStatus
from tools.types import Finding, Verdict


class CandidateFailed(Exception):  # noqa: N818  named for what happened
    """The candidate's process ended, hung, raised or answered nonsense. Carries the verdict and its finding."""

    def __init__(self, verdict: Verdict, finding: Finding) -> None:
        super().__init__(finding.summary)
        self.verdict = verdict
        self.finding = finding


class ReferenceFailed(Exception):  # noqa: N818  named for what happened
    """A process that runs the reference failed: whatever the reason, it is no candidate's fault."""


def exit_failure(status: ExitStatus) -> CandidateFailed:
    """The verdict on a process that ended without answering."""
    observed: dict[str, Any] = {"output_tail": status.output[-1500:] or None}
    if status.out_of_memory:
        gib = status.peak_memory / 2**30
        finding = observe("out_of_memory", f"used {gib:.1f} GiB of host memory and was stopped", **observed)
        return CandidateFailed(Verdict.RUNTIME_ERROR, finding)
    if status.timed_out:
        return CandidateFailed(Verdict.TIMEOUT, observe("hung", "used up its time", **observed))
    if status.violations:
        return CandidateFailed(Verdict.SANDBOX_VIOLATION, violation(status.violations))
    if status.signal is not None:
        names = {11: "segmentation fault", 6: "abort", 7: "bus error", 8: "arithmetic error", 4: "illegal instruction"}
        what = names.get(status.signal, f"signal {status.signal}")
        finding = observe("crashed", f"the process died: {what}", **observed, signal=status.signal)
        return CandidateFailed(Verdict.RUNTIME_ERROR, finding)
    finding = observe(
        "exited", f"the process left with exit code {status.code} instead of returning outputs", **observed
    )
    return CandidateFailed(Verdict.CHEATING if status.code == 0 else Verdict.RUNTIME_ERROR, finding)


def violation(tried: list[str]) -> Finding:
    """A finding on what the sandbox refused."""
    return observe("sandbox_violation", "the sandbox refused: " + "; ".join(tried[:5]), tried=tried[:20])
