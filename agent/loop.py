"""The loop: prompt, ask the model, run its tools, append; until submit, a limit, or an interrupt.

What to do next is read off the conversation alone, so a run that was killed goes on by running this very loop again.
"""

from __future__ import annotations

import time

from agent.finish import finish
from agent.models import ContextTooLong, ModelError, RecordingExhausted, ReplyAwaited
from agent.result import RunResult
from agent.run import Run
from agent.stops import ModelUnavailable, Stop, StopReason
from prompts import render
from tools.toolbox import Submitted
from transcripts.messages import Reply, ToolCall, UserMessage

NUDGES_IN_A_ROW = 3


def solve(run: Run) -> RunResult:
    """Run to the end, judge what is left, confirm the winner. Raises `Abandoned` if the run can't go on for now."""
    try:
        while True:
            run.interrupts.check()
            if run.submitted:
                raise Stop(StopReason.SUBMITTED)
            if run.pending:
                answer(run, run.pending[0])
            elif run.last_reply is not None:
                nudge(run, run.last_reply)
            else:
                run.budget.check()
                ask(run)
    except Stop as stop:
        return finish(run, stop.reason)


def ask(run: Run) -> None:
    """Get the next reply. A full context or a recording at its end stops the run; other failures leave it resumable."""
    run.progress.asking(run.budget)
    # While a person thinks nothing is in flight that an interrupt could lose.
    run.interrupts.immediately = run.person
    try:
        reply = run.client.reply(run.messages, run.toolbox_specs, on_text=run.progress.text, check=run.budget.check)
    except ContextTooLong as error:
        run.note_error("model", error)
        raise Stop(StopReason.CONTEXT_FULL) from error
    except RecordingExhausted as error:
        raise Stop(StopReason.REPLIES_EXHAUSTED) from error
    except ReplyAwaited as error:
        raise ModelUnavailable(str(error), ReplyAwaited.exit_code) from error
    except ModelError as error:
        run.note_error("model", error)
        raise ModelUnavailable(f"{error}\n{run.how_to_resume}") from error
    finally:
        run.interrupts.immediately = False
    run.add_reply(reply)


def answer(run: Run, call: ToolCall) -> None:
    """Run one tool call. The status line goes under the last result of a turn."""
    start = time.monotonic()
    run.start_call(call)
    record = run.toolbox.call(call.name, call.arguments)
    seconds = time.monotonic() - start
    text = render(record.kind, report=record)
    if len(run.pending) == 1:
        text += "\n" + run.status()
    run.add_result(call, record, text, seconds)
    run.submitted = isinstance(record, Submitted)


def nudge(run: Run, reply: Reply) -> None:
    """Answer a reply that calls no tool; the third in a row ends the run."""
    in_a_row = run.nudges_in_a_row + 1
    reason = "empty" if reply.empty else "cut_off" if reply.finish_reason == "length" else "no_tool_call"
    if in_a_row >= NUDGES_IN_A_ROW:
        raise Stop(StopReason.NO_TOOL_CALL)
    text = render(
        "nudge",
        reason=reason,
        has_code="ModelNew" in reply.text,
        best=run.best,
        in_a_row=in_a_row,
        limit=NUDGES_IN_A_ROW,
    )
    run.add_nudge(UserMessage(text=text + "\n" + run.status()), reason, in_a_row)
