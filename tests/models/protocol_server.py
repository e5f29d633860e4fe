"""A real HTTP server on loopback that speaks the OpenAI chat-completions protocol and answers as scripted.

    server.script(says("hello", ToolCall(...)), refuses(429, headers={"Retry-After": "0"}), cut(says("never whole")))

Each request takes the next answer; `server.requests` holds the bodies that came. An answer is a function of the
`Exchange`, so a test may write its own.
"""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

MODEL = "test-model"


@dataclass
class Exchange:
    """One request, and the means to answer it."""

    handler: BaseHTTPRequestHandler
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    def send(self, status: int, content: bytes, headers: dict[str, str]) -> None:
        self.handler.send_response(status)
        for name, value in headers.items():
            self.handler.send_header(name, value)
        self.handler.send_header("Content-Length", str(len(content)))
        self.handler.end_headers()
        self.handler.wfile.write(content)

    def start_stream(self) -> None:
        self.handler.send_response(200)
        self.handler.send_header("Content-Type", "text/event-stream")
        self.handler.send_header("Transfer-Encoding", "chunked")
        self.handler.end_headers()

    def send_piece(self, data: bytes) -> None:
        self.handler.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.handler.wfile.flush()

    def end_stream(self) -> None:
        self.handler.wfile.write(b"0\r\n\r\n")

    def hang_up(self) -> None:
        """Reset the connection, as a server does that dies."""
        self.handler.close_connection = True
        self.handler.connection.shutdown(socket.SHUT_RDWR)


Answer = Callable[[Exchange], None]


@dataclass
class Stream:
    """A streamed answer: each event is one JSON chunk (or raw text); `cut_after` events the line goes dead."""

    events: list[dict[str, Any] | str]
    delay: float = 0.0
    cut_after: int | None = None
    done: bool = True

    def __call__(self, exchange: Exchange) -> None:
        exchange.start_stream()
        for number, event in enumerate(self.events):
            if number == self.cut_after:
                exchange.hang_up()
                return
            time.sleep(self.delay)
            data = event if isinstance(event, str) else json.dumps(event)
            exchange.send_piece(f"data: {data}\n\n".encode())
        if self.done:
            exchange.send_piece(b"data: [DONE]\n\n")
        exchange.end_stream()


def chunk(
    delta: dict[str, Any] | None = None, *, finish: str | None = None, usage: dict[str, Any] | None = None
) -> dict[str, Any]:
    """One chunk of a stream; without `delta` and `finish` it is the usage chunk, with no choices."""
    choices = [] if delta is None and finish is None else [{"index": 0, "delta": delta or {}, "finish_reason": finish}]
    body: dict[str, Any] = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": MODEL}
    return {**body, "choices": choices, "usage": usage}


def call(call_id: str, name: str, arguments: dict[str, Any] | str) -> tuple[str, str, str]:
    """A tool call for `says`; text is sent as it is, so that it may be broken."""
    return call_id, name, arguments if isinstance(arguments, str) else json.dumps(arguments)


def says(
    text: str = "",
    *calls: tuple[str, str, str],
    finish: str | None = None,
    usage: tuple[int, int] | None = (100, 20),
    size: int = 7,
) -> Stream:
    """A whole reply, its text and its arguments cut into pieces of `size` characters, as servers do."""
    events: list[dict[str, Any] | str] = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({"content": piece}) for piece in _pieces(text, size)]
    for index, (call_id, name, arguments) in enumerate(calls):
        head = {"index": index, "id": call_id, "type": "function", "function": {"name": name, "arguments": ""}}
        events.append(chunk({"tool_calls": [head]}))
        for piece in _pieces(arguments, size):
            events.append(chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]}))
    events.append(chunk(finish=finish or ("tool_calls" if calls else "stop")))
    if usage is not None:
        counts = {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)}
        events.append(chunk(usage=counts))
    return Stream(events)


def cut(stream: Stream, after: int = 3) -> Stream:
    """The same answer with the connection lost after some events."""
    return Stream(stream.events, cut_after=after)


def whole(text: str = "", *calls: tuple[str, str, str], usage: tuple[int, int] = (100, 20)) -> Answer:
    """One JSON answer, as of a server that ignores `stream`."""
    message: dict[str, Any] = {"role": "assistant", "content": text}
    if calls:
        message["tool_calls"] = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": arguments}}
            for i, name, arguments in calls
        ]
    body = {
        "id": "c1",
        "object": "chat.completion",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}],
        "usage": {"prompt_tokens": usage[0], "completion_tokens": usage[1], "total_tokens": sum(usage)},
    }
    content = json.dumps(body).encode()
    return lambda exchange: exchange.send(200, content, {"Content-Type": "application/json"})


def refuses(
    status: int, message: str = "no", *, code: str | None = None, headers: dict[str, str] | None = None
) -> Answer:
    """An error of the protocol."""
    content = json.dumps({"error": {"message": message, "type": "error", "param": None, "code": code}}).encode()
    all_headers = {"Content-Type": "application/json", **(headers or {})}
    return lambda exchange: exchange.send(status, content, all_headers)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Connections that end early are part of the script."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


@dataclass
class ProtocolServer:
    """Use as a context manager."""

    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    _answers: deque[Answer] = field(default_factory=deque)

    def script(self, *answers: Answer | Iterable[Answer]) -> None:
        """Add answers, one per request, in order. With none left the server refuses with 400."""
        for answer in answers:
            self._answers.extend([answer] if callable(answer) else answer)

    @property
    def left(self) -> int:
        """How many scripted answers nobody has asked for."""
        return len(self._answers)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> ProtocolServer:
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                content = self.rfile.read(int(self.headers["Content-Length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                exchange = Exchange(self, self.path, headers, json.loads(content))
                outer.requests.append(exchange.body)
                outer.headers.append(headers)
                outer.paths.append(self.path)
                answer = outer._answers.popleft() if outer._answers else refuses(400, "no answer is scripted")
                try:
                    answer(exchange)
                except (BrokenPipeError, ConnectionResetError):
                    self.close_connection = True

            def log_message(self, format: str, *args: object) -> None:
                pass

        self._http = _Server(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()


class Clock:
    """Stands in for `time.sleep`, so that the waits can be read and cost nothing."""

    def __init__(self) -> None:
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)


def _pieces(text: str, size: int) -> list[str]:
    return [text[i : i + size] for i in range(0, len(text), size)]
