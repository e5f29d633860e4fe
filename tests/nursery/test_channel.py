"""Frames between processes that do not trust each other."""

import contextlib
import json
import resource
import socket
import struct
import threading
import time
from collections.abc import Iterator

import pytest

from tools.channel import ChannelClosed, ChannelGarbage, ChannelTimeout, receive_json, send_json

Pair = tuple[socket.socket, socket.socket]


@pytest.fixture
def pair() -> Iterator[Pair]:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield ours, theirs


def test_values_arrive_as_they_were_sent(pair: Pair) -> None:
    values = [None, {"a": [1, 2.5, "ü\0"]}, [], "x" * 3_000_000]
    sender = threading.Thread(target=lambda: [send_json(pair[0], value, timeout=30) for value in values])
    sender.start()
    assert [receive_json(pair[1], timeout=30) for _ in values] == values
    sender.join()


@pytest.mark.parametrize("pause", [0.02, 0.0], ids=["slow", "fast"])
def test_a_deadline_covers_the_whole_frame_and_not_each_read(pair: Pair, pause: float) -> None:
    stop = threading.Event()

    def drip() -> None:
        pair[0].send(struct.pack("!I", 4 << 20))
        while not stop.wait(pause):
            with contextlib.suppress(BlockingIOError):
                pair[0].send(b" ", socket.MSG_DONTWAIT)

    thread = threading.Thread(target=drip)
    thread.start()
    with pytest.raises(ChannelTimeout):
        receive_json(pair[1], timeout=0.3)
    stop.set()
    thread.join()


def test_sending_to_one_who_does_not_read_ends_at_the_deadline(pair: Pair) -> None:
    with pytest.raises(ChannelTimeout):
        send_json(pair[0], "x" * 4_000_000, timeout=0.2)


def test_a_closed_channel_is_told_from_a_broken_one(pair: Pair) -> None:
    pair[0].send(struct.pack("!I", 10) + b"half")
    pair[0].close()
    with pytest.raises(ChannelClosed):
        receive_json(pair[1], timeout=5)


def test_sending_to_a_closed_channel_is_an_error_and_no_signal(pair: Pair) -> None:
    pair[1].close()
    with pytest.raises(ChannelClosed):
        send_json(pair[0], 1, timeout=5)


@pytest.mark.parametrize(
    "body",
    [b"not json", b"\xff\xfe", b"[" * 100_000, b"9" * 100_000, b"", b'{"a": 1} {"b": 2}'],
    ids=["text", "no utf-8", "deep", "long number", "empty", "two values"],
)
def test_what_is_no_json_is_garbage(pair: Pair, body: bytes) -> None:
    sender = threading.Thread(target=lambda: pair[0].sendall(struct.pack("!I", len(body)) + body))
    sender.start()
    with pytest.raises(ChannelGarbage):
        receive_json(pair[1], timeout=30)
    sender.join()


def test_a_frame_over_the_limit_is_refused_before_it_is_read(pair: Pair) -> None:
    pair[0].send(struct.pack("!I", 1001))
    with pytest.raises(ChannelGarbage):
        receive_json(pair[1], timeout=5, max_bytes=1000)


def test_a_message_over_the_limit_is_not_sent(pair: Pair) -> None:
    with pytest.raises(ValueError, match="limit"):
        send_json(pair[0], "x" * 1000, max_bytes=1000)
    pair[0].close()
    assert pair[1].recv(1) == b""


def test_a_flood_of_text_takes_neither_time_nor_memory(pair: Pair) -> None:
    """The first four letters of a flood announce a frame of a gigabyte, and that is the end of it."""

    def flood() -> None:
        with pytest.raises(ConnectionError):
            for _ in range(64):
                pair[0].sendall(b"correct " * (1 << 17))

    thread = threading.Thread(target=flood)
    thread.start()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ChannelGarbage):
        receive_json(pair[1], timeout=30)
    pair[1].close()
    thread.join()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 16 << 10


def test_a_frame_is_json_and_nothing_else(pair: Pair) -> None:
    send_json(pair[0], {"b": 1}, timeout=5)
    data = pair[1].recv(100)
    assert struct.unpack("!I", data[:4])[0] == len(data) - 4
    assert json.loads(data[4:]) == {"b": 1}


def test_none_waits_as_long_as_it_takes(pair: Pair) -> None:
    timer = threading.Timer(0.2, lambda: send_json(pair[0], 1))
    begun = time.monotonic()
    timer.start()
    assert receive_json(pair[1], timeout=None) == 1
    assert time.monotonic() - begun >= 0.19
