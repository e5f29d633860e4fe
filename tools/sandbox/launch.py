"""The process that becomes the warden of a program: `python -I -S launch.py FD`, with the request on the socket FD.

Run by path, without site packages and without this package's `__init__`, so that it is up in tens of milliseconds.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import types
from pathlib import Path
from typing import NoReturn


def main(fd: int) -> None:
    package = types.ModuleType("tools.sandbox")
    package.__path__ = [str(Path(__file__).parent)]
    sys.modules["tools.sandbox"] = package
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tools.channel import receive_json
    from tools.sandbox import filter as call_filter
    from tools.sandbox.policy import Policy
    from tools.sandbox.warden import watch

    control = socket.socket(fileno=fd)
    request = receive_json(control, timeout=30)
    argv, out, err = request["argv"], request["stdout"], request["stderr"]

    def run_program(line: int) -> NoReturn:
        for number in (signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        os.dup2(out, 1)
        os.dup2(err, 2)
        os.closerange(3, line)
        os.closerange(line + 1, 1 << 20)
        try:
            os.chdir(request["cwd"])
            call_filter.arm(line)
            call_filter.lock_down(programs=True)
            os.execvpe(argv[0], argv, request["env"])
        except OSError as error:
            os.write(2, f"{argv[0]}: {error}\n".encode())
            os._exit(127)

    os.setsid()
    watch(Policy.from_json(request["policy"]), control, run_program, {out, err})


if __name__ == "__main__":
    main(int(sys.argv[1]))
