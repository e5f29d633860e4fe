"""A folder as the model: each prompt is written to a file, the reply is read from one that somebody writes.

For the n-th reply there are `NNN-prompt.md` (what is new since the last reply, to read), `NNN-prompt.json` (the whole
conversation and the tools, to process), then `NNN-reply.md` or `NNN-reply.json`, and `NNN-problem.md` if that reply
cannot be read. The number follows from the conversation, so the same command goes on where it stopped.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.models.base import BadRequest, ModelError, ReplyAwaited, ToolSpec
from agent.models.mailbox_form import Malformed, WrittenReply, parse_json, parse_markdown
from prompts import render
from transcripts.log import write_atomic
from transcripts.messages import AssistantMessage, Message, Reply, ToolCall, ToolMessage

# Seconds between two looks at the folder. A reply counts when two looks saw the same: none is taken half-written.
POLL = 0.25


class MailboxClient:
    """A `ModelClient`. `wait` False raises ReplyAwaited where no reply is there yet.

    `tell` gets one line for the user when the wait begins, and when a reply cannot be read.
    """

    model = "mailbox"

    def __init__(self, folder: Path, *, wait: bool = True, tell: Callable[[str], None] | None = None) -> None:
        """Raises BadRequest if the folder cannot be made."""
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except FileExistsError:
            raise BadRequest(f"{folder} cannot be the mailbox: it is a file. Name another folder.") from None
        except OSError as error:
            raise BadRequest(f"{folder} cannot be the mailbox: {error.strerror}. Name another folder.") from None
        self._folder = folder
        self._wait = wait
        self._tell = tell or (lambda _: None)

    def reply(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSpec],
        *,
        on_text: Callable[[str], None] | None = None,
        check: Callable[[], None] | None = None,
    ) -> Reply:
        """See `ModelClient.reply`. Raises transcripts.TranscriptError if the prompt cannot be written."""
        started = time.monotonic()
        letter = _Letter(self._folder, 1 + sum(isinstance(message, AssistantMessage) for message in messages))
        letter.post(messages, tools)
        written = self._await(letter, tools, check or (lambda: None))
        if on_text is not None and written.text:
            on_text(written.text)
        calls = tuple(
            ToolCall(
                id=f"mail_{letter.number:03d}_{index}",
                name=call.name,
                arguments=call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments),
            )
            for index, call in enumerate(written.calls, 1)
        )
        return Reply(
            text=written.text,
            tool_calls=calls,
            finish_reason="tool_calls" if calls else "stop",
            model=self.model,
            seconds=time.monotonic() - started,
        )

    def close(self) -> None:
        """Nothing is held."""

    def _await(self, letter: _Letter, tools: Sequence[ToolSpec], check: Callable[[], None]) -> WrittenReply:
        """Read the reply as soon as there is one that can be read."""
        told = False
        refused: bytes | None = None
        while True:
            content = letter.settled()
            if content is not None and content != refused:
                try:
                    written = letter.read(content, tools)
                except Malformed as problem:
                    refused = content
                    letter.complain(str(problem))
                    self._tell(f"The reply to {letter.prompt.name} cannot be read. See {letter.problem}.")
                else:
                    letter.problem.unlink(missing_ok=True)
                    return written
            if not self._wait:
                raise ReplyAwaited(letter.problem if refused else letter.prompt, letter.reply)
            if not told:
                self._tell(f"Waiting for a reply: read {letter.prompt}, write {letter.reply}.")
                told = True
            check()
            time.sleep(POLL)


class _Letter:
    """The files of one exchange."""

    def __init__(self, folder: Path, number: int) -> None:
        def named(rest: str) -> Path:
            return folder / f"{number:03d}-{rest}"

        self.number = number
        self.prompt = named("prompt.md")
        self.data = named("prompt.json")
        self.reply = named("reply.md")
        self.reply_json = named("reply.json")
        self.problem = named("problem.md")

    def post(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> None:
        """Write the prompt. Raises BadRequest if a reply lies there that answers another conversation."""
        said = [message.model_dump(mode="json") for message in messages]
        if self._posted() not in (None, said) and self._reply_file() is not None:
            raise BadRequest(
                f"{self._reply_file()} answers the prompt of another run. Name an empty folder with --mailbox, or "
                "delete the files of that run."
            )
        listed = [{"name": t.name, "description": t.description, "parameters": t.parameters} for t in tools]
        whole = {"number": self.number, "messages": said, "tools": listed}
        # The prompt to read comes last: who sees it finds the other one there.
        write_atomic(self.data, json.dumps(whole, indent=1, ensure_ascii=False) + "\n")
        write_atomic(self.prompt, self._readable(messages, tools))

    def settled(self) -> bytes | None:
        """The reply's content once it is not empty and two looks saw the same, else None."""
        path = self._reply_file()
        if path is None:
            return None
        try:
            before = path.read_bytes()
            time.sleep(POLL)
            return before if before.strip() and before == path.read_bytes() else None
        except FileNotFoundError:
            # Renamed or written anew just now.
            return None
        except OSError as error:
            raise ModelError(f"{path} cannot be read: {error.strerror}. Make it readable and run again.") from None

    def read(self, content: bytes, tools: Sequence[ToolSpec]) -> WrittenReply:
        """Raises Malformed."""
        try:
            text = content.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            raise Malformed(f"The file is not UTF-8 (byte {error.start}).") from None
        path = self._reply_file()
        return parse_json(text) if path == self.reply_json else parse_markdown(text, tools)

    def complain(self, problem: str) -> None:
        """Write down why the reply cannot be read."""
        path = self._reply_file() or self.reply
        write_atomic(self.problem, render("mailbox", part="problem", problem=problem, reply=path.name))

    def _posted(self) -> object:
        """The messages of the prompt that lies there, or None."""
        try:
            return json.loads(self.data.read_text(encoding="utf-8"))["messages"]
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _reply_file(self) -> Path | None:
        return next((path for path in (self.reply_json, self.reply) if path.is_file()), None)

    def _readable(self, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> str:
        """What is new since the last reply, word for word, with the form of the reply under it."""
        new: list[str] = []
        for message in reversed(messages):
            if isinstance(message, AssistantMessage):
                break
            title = f"tool: {message.name}" if isinstance(message, ToolMessage) else message.role
            new.append(f"# {title}\n\n{message.text.strip(chr(10))}\n")
        form = render(
            "mailbox",
            part="form",
            number=self.number,
            tools=tools,
            markdown=self.reply.name,
            json=self.reply_json.name,
            data=self.data.name,
        )
        return "\n".join([*reversed(new), form])
