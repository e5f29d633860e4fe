"""The evidence that goes with every result: where, with what and when it was measured."""

from __future__ import annotations

import datetime
from typing import Literal

from tools.device import cpu, nvml
from tools.types import Evidence, SandboxLevel


def evidence(kind: Literal["cuda", "cpu"], *, sandbox: SandboxLevel, compiler: str | None = None) -> Evidence:
    """What holds at this moment on the current device. Clocks are read, never set; one call takes under 1 ms on a CPU.

    `compiler` is the compiler's own version line. On CUDA the device must have been initialised by the caller.
    """
    import torch

    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    if kind == "cpu":
        clock = cpu.clock_mhz()
        return Evidence(
            device="cpu",
            device_name=cpu.name(),
            torch_version=torch.__version__,
            compiler=compiler,
            sandbox=sandbox,
            date=now,
            clocks_mhz={"cpu": clock} if clock else None,
            threads=torch.get_num_threads(),
        )
    index = torch.cuda.current_device()
    properties = torch.cuda.get_device_properties(index)
    return Evidence(
        device=f"cuda:{index}",
        device_name=properties.name,
        driver=nvml.driver_version(),
        torch_version=torch.__version__,
        cuda_version=torch.version.cuda,
        compiler=compiler,
        sandbox=sandbox,
        date=now,
        clocks_mhz=nvml.clocks_mhz(str(properties.uuid)) or None,
    )
