"""Run a program that starts and watches another, such as a sanitizer or a profiler, in the sandbox.

Such instruments talk to the process they watch over sockets, which a candidate may not have. So they get a network with
nothing in it but themselves; where the machine gives no namespaces they are not run at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tools.sandbox import Completed, Limits, SandboxError
from tools.sandbox.policy import Policy
from tools.sandbox.run import run_warden
from tools.types import SandboxLevel

_LAUNCH = str(Path(__file__).with_name("launch.py"))


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
    request = {"argv": list(argv), "cwd": str(cwd), "env": env, "counters": counters}
    return run_warden(_LAUNCH, policy, request, max_output, "the sandbox of an instrument")
