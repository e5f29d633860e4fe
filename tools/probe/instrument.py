"""Run a program that starts and watches another, such as a sanitizer or a profiler, in the sandbox.

Such instruments talk to the process they watch over sockets, which a candidate may not have. So they get a network with
nothing in it but themselves; where the machine gives no namespaces they are not run at all.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tools.channel import ChannelError, send_json
from tools.sandbox import Completed, Limits, SandboxError
from tools.sandbox.policy import Policy
from tools.sandbox.run import _collect, _outcome
from tools.types import SandboxLevel

_LAUNCH = str(Path(__file__).with_name("launch.py"))
_SHARED = ("signal", "timed_out", "out_of_memory", "violations", "peak_memory", "seconds")


def run_instrumented(
    argv: Sequence[str],
    *,
    cwd: Path,
    env: dict[str, str],
    limits: Limits,
    writable: Sequence[Path],
    level: SandboxLevel,
    readable: Sequence[Path] = (),
    hidden: Sequence[Path] = (),
    counters: bool = False,
    max_output: int = 4 << 20,
) -> Completed:
    """As `tools.sandbox.run_sandboxed`, with sockets on a loopback of the program's own.

    With `counters`, for root only, it keeps the one capability by which NVIDIA's driver lets it read performance
    counters (CAP_PERFMON), and so has no user namespace; all else is as without. Raises SandboxError.
    """
    if level is not SandboxLevel.NAMESPACES:
        raise SandboxError("instruments need namespaces of their own, which this machine does not give")
    policy = Policy(
        isolation=level.value,
        **limits.model_dump(),
        writable=[str(p.absolute()) for p in writable],
        readable=[str(p.absolute()) for p in (cwd, *readable)],
        hidden=[str(p.absolute()) for p in hidden],
    )
    ours, theirs = socket.socketpair()
    out_read, out_write = os.pipe()
    err_read, err_write = os.pipe()
    with ours, os.fdopen(out_read, "rb") as out, os.fdopen(err_read, "rb") as err:
        try:
            warden = subprocess.Popen(
                [sys.executable, "-I", "-S", _LAUNCH, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs.fileno(), out_write, err_write],
                env={},
            )
        finally:
            theirs.close()
            os.close(out_write)
            os.close(err_write)
        try:
            request = {
                "policy": policy.to_json(),
                "argv": list(argv),
                "cwd": str(cwd),
                "env": env,
                "stdout": out_write,
                "stderr": err_write,
                "counters": counters,
            }
            send_json(ours, request, timeout=30)
            stdout, stderr = _collect((out.fileno(), err.fileno()), max_output)
            outcome = _outcome(ours)
        except ChannelError as error:
            raise SandboxError(f"the sandbox's warden is gone ({error}); `agent doctor` tells more") from None
        finally:
            ours.close()  # which tells the warden to end what still runs
            warden.wait()
    if outcome["error"]:
        raise SandboxError(f"the sandbox of an instrument could not be set up ({outcome['error']})")
    return Completed(
        returncode=outcome["code"], stdout=stdout, stderr=stderr, **{name: outcome[name] for name in _SHARED}
    )
