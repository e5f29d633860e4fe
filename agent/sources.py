"""Where the replies of a run come from, by what the command line says."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent.models import ModelClient
from agent.progress import Progress


@dataclass(frozen=True)
class ModelSource:
    """`label` goes into the configuration of the run, so it tells two commands apart; `open` makes the client.

    `person` is True where a reply is written by hand: nothing is in flight then while it is awaited. `written_for` is
    the problem that recorded replies were given to.
    """

    label: str
    open: Callable[[Progress], ModelClient]
    person: bool = False
    written_for: str | None = None


def openai_source(model: str, base_url: str | None) -> ModelSource:
    """A model at an OpenAI-compatible endpoint; the key is read from the environment when the client is made."""

    def open_client(progress: Progress) -> ModelClient:
        from agent.models.openai_client import OpenAIClient

        return OpenAIClient(model, base_url=base_url, on_wait=progress.waiting)

    return ModelSource(model, open_client)


def recorded_source(recording: str) -> ModelSource:
    """The replies of a transcript. Raises TranscriptError if there is none of that name."""
    from agent.models.recorded import RecordedClient

    client = RecordedClient(recording)
    return ModelSource(client.model, lambda _progress: client, written_for=client.problem)


def recordings(folder: Path) -> dict[str, Path]:
    """The newest run of each problem in a folder of run folders, or of one run folder, that holds a reply; by the
    problem's name.

    Empty where there is none. A run that can't be read is left out.
    """
    from transcripts import TranscriptError, read_events, read_header
    from transcripts.events import ReplyReceived

    found: dict[str, Path] = {}
    for run in [folder, *sorted(folder.iterdir())] if folder.is_dir() else []:
        with suppress(TranscriptError, OSError):
            problem = read_header(run).problem
            if any(isinstance(event, ReplyReceived) for event in read_events(run)):
                found[problem] = run
    return found


def mailbox_source(folder: Path, *, wait: bool) -> ModelSource:
    """Replies that somebody writes into `folder`."""

    def open_client(progress: Progress) -> ModelClient:
        from agent.models.mailbox import MailboxClient

        return MailboxClient(folder, wait=wait, tell=progress.line)

    return ModelSource(f"mailbox:{folder}", open_client, person=True)
