"""Children that stand where a worker should, and answer as no worker of ours does."""

from __future__ import annotations

import os
import socket
import struct
import time
from typing import Any

from tools.channel import receive_json, send_json


def reply(sock: socket.socket, args: dict[str, Any], fds: list[int]) -> None:
    """Be ready, take one request, answer it in the way that `how` names, and then stay."""
    how = args["how"]
    if how == "never ready":
        time.sleep(60)
    if how == "dies before it is ready":
        os._exit(3)
    send_json(sock, {"ready": True})
    request = receive_json(sock, timeout=60)
    if how == "echo":
        send_json(sock, {"echo": request})
    elif how == "too long":
        sock.sendall(struct.pack("!I", 1 << 31))
    elif how == "torn":
        sock.sendall(struct.pack("!I", 100) + b'{"half":')
        os._exit(0)
    elif how == "no JSON":
        text = b"\x80\x04\x95 pickled"
        sock.sendall(struct.pack("!I", len(text)) + text)
    elif how == "deep":
        text = b"[" * 200_000
        sock.sendall(struct.pack("!I", len(text)) + text)
    elif how == "closed":
        sock.close()
        time.sleep(60)
    elif how == "leaves":
        os._exit(0)
    elif how == "leaves with 7":
        os._exit(7)
    elif how == "aborts":
        os.abort()
    elif how == "silent":
        time.sleep(60)
    elif how == "drips":
        sock.sendall(struct.pack("!I", 1000))
        while True:
            sock.sendall(b" ")
            time.sleep(0.05)
    else:
        send_json(sock, args["answer"])
    time.sleep(60)
