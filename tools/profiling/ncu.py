"""Runs Nsight Compute over one warm call of a candidate, in the sandbox, and says in one code why it could not."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.judge.ownership import bare_name
from tools.probe.host import Host
from tools.probe.records import Trouble
from tools.profiling.metrics import BESIDE_SECTIONS, SECTIONS
from tools.profiling.ncu_csv import parse
from tools.profiling.records import KernelCounters, Unavailable
from tools.sandbox import SandboxError

NCU_SECONDS = 120.0
IMPORT_SECONDS = 30.0
MOST_TRIES = 3
MOST_LAUNCHES = 8
"""Launches of one call that are measured: each takes a few dozen replays."""

_PARAMETERS = Path("/proc/driver/nvidia/params")
_PERMISSION = "ERR_NVGPUCTRPERM"
_UNKNOWN_METRIC = re.compile(r"[Ff]ailed to find metric:? *([\w.]+)")
_ERROR = re.compile(r"^==ERROR== *(.+)$", re.MULTILINE)


def find_ncu(toolkit: Path | None) -> Path | None:
    """The program: of the toolkit that compiles, on PATH, or where NVIDIA's packages put it, newest first."""
    places = [toolkit / "bin" / "ncu"] if toolkit else []
    if found := shutil.which("ncu"):
        places.append(Path(found))
    places.append(Path("/usr/local/cuda/bin/ncu"))
    for folder in ("/opt/nvidia/nsight-compute", "/usr/local/cuda"):
        places += sorted(Path(folder).glob("*/ncu"), reverse=True)
    return next((place for place in places if os.access(place, os.X_OK)), None)


def counters_need_root() -> bool:
    """Whether the driver keeps the counters for the administrator, as it does unless told otherwise."""
    try:
        text = _PARAMETERS.read_text()
    except OSError:
        return True
    return re.search(r"RmProfilingAdminOnly:\s*0", text) is None


def profile_command(
    ncu: Path, kernels: Sequence[str], report: Path, metrics: Sequence[str] = BESIDE_SECTIONS
) -> list[str]:
    """Measure the candidate's own `kernels` (demangled names) between the marks, into the file `report`."""
    names = sorted({re.escape(bare_name(name).rpartition("::")[2]) for name in kernels})
    return [
        str(ncu),
        *("--target-processes", "application-only", "--profile-from-start", "off"),
        *("--clock-control", "none"),
        *("--kernel-name-base", "function", "--kernel-name", f"regex:^(.*::)?({'|'.join(names)})$"),
        *("--launch-count", str(MOST_LAUNCHES)),
        *(flag for section in SECTIONS for flag in ("--section", section)),
        *(("--metrics", ",".join(metrics)) if metrics else ()),
        *("--force-overwrite", "--export", str(report)),
    ]


def read_command(ncu: Path, report: Path, page: str) -> list[str]:
    """Print a report as CSV; `page` is raw (a column for each metric) or details (with the rules)."""
    return [str(ncu), "--import", str(report), "--csv", "--page", page, "--print-units", "base"]


def count(
    host: Host, args: dict[str, Any], kernels: Sequence[str], folder: Path
) -> tuple[list[KernelCounters], Unavailable | None, Trouble | None]:
    """Counters of the candidate's kernels in one warm call; else why there are none.

    A candidate that fails under the instrument gives its trouble beside. Raises nothing: what goes wrong is told.
    """
    nvcc = host.builder.toolchain.nvcc
    ncu = find_ncu(Path(nvcc.home) if nvcc else None)
    if ncu is None:
        return [], Unavailable(code="not_installed"), None
    if not host.isolated:
        return [], Unavailable(code="no_namespaces"), None
    if not kernels:
        return [], Unavailable(code="no_own_kernel"), None
    home = ncu.resolve().parent
    report = folder / "profile.ncu-rep"
    report.unlink(missing_ok=True)
    privileged = counters_need_root() and os.geteuid() == 0
    metrics, unknown = list(BESIDE_SECTIONS), set[str]()
    deadline = time.monotonic() + NCU_SECONDS
    try:
        for _ in range(MOST_TRIES):
            found = host.run(
                profile_command(ncu, kernels, report, metrics),
                "tools.profiling.traced:marked",
                args,
                folder,
                max(1.0, deadline - time.monotonic()),
                sockets=True,
                counters=privileged,
                readable=[home],
            )
            # A version or a device may lack one of them, and then measures nothing.
            unknown = set(_UNKNOWN_METRIC.findall(found.output)) & set(metrics)
            if report.is_file() or not unknown:
                break
            metrics = [name for name in metrics if name not in unknown]
        else:
            return [], Unavailable(code="failed", said=f"it does not know {', '.join(sorted(unknown))}"[:400]), None
        if found.trouble is not None or not report.is_file():
            why = failure(found.output, found.trouble)
            said = "; ".join((*found.refused, why.said)) if why.code == "failed" else why.said
            return [], why.model_copy(update={"said": said}), found.trouble
        pages = [
            host.execute(read_command(ncu, report, page), folder, IMPORT_SECONDS, readable=[home])
            for page in ("raw", "details")
        ]
    except (SandboxError, OSError) as error:
        return [], Unavailable(code="failed", said=str(error)[:400]), None
    counted = parse("\n".join(done.stdout.decode("utf-8", "replace") for done in pages))
    if not counted:
        return [], Unavailable(code="no_report", said=_said(pages[0].stderr.decode("utf-8", "replace"))), None
    return counted, None, None


def failure(output: str, trouble: Trouble | None) -> Unavailable:
    """Why no report came, from what the instrument printed."""
    if _PERMISSION in output:
        return Unavailable(code="no_permission", said=_said(output))
    if "driver resource was unavailable" in output:
        return Unavailable(code="in_use")
    if trouble is not None and trouble.ended == "timeout":
        return Unavailable(code="timeout")
    if "No kernels were profiled" in output:
        return Unavailable(code="no_kernel")
    return Unavailable(code="failed", said=_said(output))


def _said(output: str) -> str:
    """The instrument's own error, or the end of what was printed."""
    errors = _ERROR.findall(output)
    return " ".join(errors[:2])[:400] if errors else output.strip()[-400:]
