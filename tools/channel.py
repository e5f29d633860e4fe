"""Frames of JSON over a stream socket: four bytes of length, then that many bytes of text.

Both ends may be hostile to the other: a frame is bounded before a byte of it is read, a deadline covers the whole frame
(not each read), and what arrives is parsed as data and as nothing else.
"""

from __future__ import annotations

import json
import select
import socket
import struct
import time
from typing import Any

_LENGTH = struct.Struct("!I")
# Large enough for a candidate's source or a profile, small enough to be harmless a few times over.
MAX_BYTES = 4 << 20
_CHUNK = 1 << 16
_GRACE_SECONDS = 1.0


class ChannelError(Exception):
    """The channel can no longer be trusted or used: close it."""


class ChannelClosed(ChannelError):  # noqa: N818 - named for what happened
    """The other end is gone, in the middle of a frame or before one."""


class ChannelTimeout(ChannelError):  # noqa: N818
    """The deadline passed before a whole frame had gone through."""


class ChannelGarbage(ChannelError):  # noqa: N818
    """The other end sent something that is no frame of ours: too long, or no JSON."""


def send_json(sock: socket.socket, value: Any, *, timeout: float | None = None, max_bytes: int = MAX_BYTES) -> None:
    """Send one frame. `timeout` in seconds for all of it; None waits for ever.

    Raises ValueError where `value` makes a frame of more than `max_bytes`, ChannelClosed, ChannelTimeout.
    """
    body = json.dumps(value, separators=(",", ":")).encode()
    if len(body) > max_bytes:
        raise ValueError(f"a message of {len(body)} bytes is over the limit of {max_bytes}")
    data = memoryview(_LENGTH.pack(len(body)) + body)
    deadline = _deadline(timeout)
    while data:
        _wait(sock, select.POLLOUT, deadline)
        try:
            sent = sock.send(data, socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL)
        except BlockingIOError:
            continue
        except OSError as error:
            raise ChannelClosed(f"the other end is gone ({error})") from None
        data = data[sent:]


def receive_json(sock: socket.socket, *, timeout: float | None = None, max_bytes: int = MAX_BYTES) -> Any:
    """Receive one frame of at most `max_bytes` bytes. `timeout` in seconds for all of it; None waits for ever.

    Raises ChannelClosed, ChannelTimeout, ChannelGarbage.
    """
    deadline = _deadline(timeout)
    (length,) = _LENGTH.unpack(_read(sock, _LENGTH.size, deadline))
    if length > max_bytes:
        raise ChannelGarbage(f"a frame of {length} bytes was announced, the limit is {max_bytes}")
    body = _read(sock, length, deadline)
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        raise ChannelGarbage(f"a frame holds no JSON ({type(error).__name__}: {str(error)[:200]})") from None


def _deadline(timeout: float | None) -> float | None:
    return None if timeout is None else time.monotonic() + timeout


def _wait(sock: socket.socket, event: int, deadline: float | None) -> None:
    poll = select.poll()
    poll.register(sock, event)
    left = None if deadline is None else deadline - time.monotonic()
    # What is there already may still be taken, but not for as long as someone keeps dripping.
    late = left is not None and left < -_GRACE_SECONDS
    if late or not poll.poll(None if left is None else max(0.0, left) * 1000):
        raise ChannelTimeout("the other end did not answer in time")


def _read(sock: socket.socket, size: int, deadline: float | None) -> bytes:
    data = bytearray()
    while len(data) < size:
        _wait(sock, select.POLLIN, deadline)
        try:
            chunk = sock.recv(min(_CHUNK, size - len(data)), socket.MSG_DONTWAIT)
        except BlockingIOError:
            continue
        except OSError as error:
            raise ChannelClosed(f"the channel broke ({error})") from None
        if not chunk:
            raise ChannelClosed("the other end closed the channel")
        data += chunk
    return bytes(data)
