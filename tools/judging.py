"""The judge's process as the evaluator holds it: one request at a time, and an error that says whose fault it is."""

from __future__ import annotations

from typing import Any

from problems import ProblemError
from tools.channel import ChannelError, receive_json, send_json
from tools.nursery import Child, Nursery
from tools.sandbox import Limits
from tools.settings import EvaluatorError

SETUP_SECONDS = 300.0
REQUEST_SECONDS = 900.0
MESSAGE_BYTES = 64 << 20
_LIMITS = Limits(seconds=7 * 86400, memory_bytes=1 << 50, processes=4096, file_bytes=1 << 50, open_files=4096)


class JudgeProcess:
    """Started by the constructor, which waits until the problem is set up. `ready` is what it said then.

    Raises NurseryError, ProblemError where the problem can't be used, EvaluatorError where the judge fails. Once it has
    failed to answer it is over: `alive` is False.
    """

    def __init__(self, nursery: Nursery, args: dict[str, Any]) -> None:
        self.alive = True
        self._child: Child = nursery.spawn(
            "tools.judge.main:main", args, sandboxed=False, limits=_LIMITS, share_nursery=True
        )
        try:
            self.ready: dict[str, Any] = self._receive(SETUP_SECONDS, "ready")
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        return self._child.pid

    def request(self, operation: str, **arguments: Any) -> Any:
        """Carry out one operation and return its result, a record as JSON."""
        try:
            send_json(self._child.sock, {"op": operation, **arguments}, timeout=60.0, max_bytes=MESSAGE_BYTES)
        except ChannelError as error:
            raise self._lost(error) from error
        return self._receive(REQUEST_SECONDS, "result")

    def close(self) -> None:
        """End the process and every worker of its."""
        self.alive = False
        self._child.kill()
        self._child.close()

    def _receive(self, seconds: float, key: str) -> Any:
        try:
            reply = receive_json(self._child.sock, timeout=seconds, max_bytes=MESSAGE_BYTES)
        except ChannelError as error:
            raise self._lost(error) from error
        if "problem_error" in reply:
            raise ProblemError(reply["problem_error"])
        if "judge_error" in reply:
            raise EvaluatorError(
                f"the judge failed, which is our fault and not the candidate's:\n{reply['judge_error']}"
            )
        return reply[key]

    def _lost(self, error: ChannelError) -> EvaluatorError:
        status = self._child.wait(5.0)
        self.close()
        detail = f": {status.output[-1000:]}" if status is not None and status.output else ""
        return EvaluatorError(
            f"the judge's process ended ({error}); a new one is started for the next candidate{detail}"
        )
