"""Every way in which a run comes to its end, as one enum and one exception that carries it up to the loop."""

from __future__ import annotations

from enum import StrEnum


class StopReason(StrEnum):
    """Why a run ended. The value is what `run_finished` and `result.json` say."""

    SUBMITTED = "submitted"
    TURNS = "turns"
    MINUTES = "minutes"
    COST = "cost"
    NO_TOOL_CALL = "no_tool_call"
    CONTEXT_FULL = "context_full"
    REPLIES_EXHAUSTED = "replies_exhausted"
    INTERRUPTED = "interrupted"


class Stop(Exception):  # noqa: N818 - an end, not an error
    """The run ends here, in order: what is left is judged, the winner confirmed, the result written."""

    def __init__(self, reason: StopReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


class Abandoned(Exception):  # noqa: N818
    """The run can't go on now and stays resumable. The message says why and what to do; `exit_code` for the shell."""

    def __init__(self, message: str, exit_code: int = 2) -> None:
        super().__init__(message)
        self.exit_code = exit_code


class ModelUnavailable(Abandoned):
    """No reply can be got, for a reason that would hold for any other problem too."""
