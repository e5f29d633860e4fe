"""From expected failures to one message on stderr and an exit code; anything else keeps its traceback."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import NoReturn

import typer

FOUND, NONE_FOUND, UNUSABLE, INTERRUPTED = 0, 1, 2, 130


def fail(message: str, code: int = UNUSABLE) -> NoReturn:
    """Say why and what to do next, and exit."""
    print(message, file=sys.stderr)
    raise typer.Exit(code)


@contextmanager
def told(*, kept: bool = True) -> Generator[None]:
    """Every failure that a user can do something about ends here. `kept` says that a command stopped in between has a
    run to go on with."""
    from agent.models import ModelError
    from agent.stops import Abandoned, Stop
    from problems import ProblemError
    from tools.build.toolchain import ToolchainError
    from tools.evaluator import EvaluatorError
    from transcripts import TranscriptError

    try:
        yield
    except (ProblemError, TranscriptError, EvaluatorError, ModelError) as error:
        fail(str(error))
    except ToolchainError as error:
        fail(f"Nothing can be built here: {error}.")
    except Abandoned as error:
        fail(str(error), error.exit_code)
    except Stop:
        fail("Interrupted before there was anything to write.", INTERRUPTED)
    except KeyboardInterrupt:
        resumes = " at once. The same command goes on from the last finished call." if kept else "."
        fail(f"Stopped{resumes}", INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output is gone (`agent … | head`). Python would complain again while it shuts down.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise typer.Exit(NONE_FOUND) from None
    except OSError as error:
        if error.errno in (errno.EAGAIN, errno.ENOMEM):
            fail(f"The machine has no process or memory left ({error.strerror}). End something, and run it again.")
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        fail(f"The disk is full ({error.filename or 'no file named'}). Make room, and run the same command again.")
