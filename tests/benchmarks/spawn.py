"""How long it takes from asking the nursery for a sandboxed child until that child answers (median, milliseconds).

`python tests/benchmarks/spawn.py`: the last line is the figure at the strongest level of this machine.
"""

from __future__ import annotations

import statistics
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from tools.channel import receive_json, send_json
from tools.nursery import Nursery
from tools.sandbox import Limits, probe_level, run_sandboxed
from tools.types import SandboxLevel

_TIMES = 30


def main() -> None:
    strongest = probe_level()
    figures: dict[tuple[SandboxLevel, bool], float] = {}
    for level in SandboxLevel:
        if level is SandboxLevel.NAMESPACES and strongest is not level:
            continue
        began = time.perf_counter()
        with Nursery.start(level) as nursery:
            spawn(nursery, sandboxed=False)
            print(f"{level}: nursery up and first child answered {time.perf_counter() - began:.2f} s")
            for sandboxed in (False, True):
                samples = sorted(spawn(nursery, sandboxed=sandboxed) for _ in range(_TIMES))
                figures[level, sandboxed] = statistics.median(samples)
                print(
                    f"{level}, sandboxed={sandboxed}: median {statistics.median(samples):.1f} ms, "
                    f"fastest {samples[0]:.1f}, slowest {samples[-1]:.1f} ({_TIMES} times)"
                )
        samples = sorted(program(level) for _ in range(_TIMES))
        print(f"{level}: a program that does nothing, by run_sandboxed: median {statistics.median(samples):.1f} ms")
    print(f"sandboxed spawn, {strongest}: {figures[strongest, True]:.1f} ms")


def spawn(nursery: Nursery, *, sandboxed: bool) -> float:
    """Milliseconds from the request to the child's first word."""
    began = time.perf_counter()
    with nursery.spawn("tests.nursery.nursery_targets:echo", {}, sandboxed=sandboxed) as child:
        receive_json(child.sock, timeout=60)
        elapsed = time.perf_counter() - began
        send_json(child.sock, None)
        child.wait(60)
    return elapsed * 1000


def program(level: SandboxLevel) -> float:
    began = time.perf_counter()
    run_sandboxed(["true"], cwd=Path("/"), env={"PATH": "/bin"}, limits=Limits(), writable=[], level=level)
    return (time.perf_counter() - began) * 1000


if __name__ == "__main__":
    main()
