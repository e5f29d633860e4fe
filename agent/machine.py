"""What this machine can do, found out without importing torch: which device `auto` means, and what `doctor` says."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tools.build.toolchain import Toolchain, ToolchainError, find_all_nvcc, find_toolchain
from tools.device import cpu, nvml
from tools.evaluator import EvaluatorError
from tools.sandbox import probe_level
from tools.types import SandboxLevel


@dataclass(frozen=True)
class Check:
    """One line of `agent doctor`. `advice` says what to do where something is missing; `needed` if nothing works
    without it."""

    name: str
    ok: bool
    found: str
    advice: str | None = None
    needed: bool = False


def resolve_device(choice: Literal["auto", "cuda", "cpu"]) -> Literal["cuda", "cpu"]:
    """The device that a command works on. Raises EvaluatorError for `cuda` where none can be used."""
    if choice == "cpu":
        return "cpu"
    missing = _missing_for_cuda()
    if missing is None:
        return "cuda"
    if choice == "cuda":
        raise EvaluatorError(f"--device cuda can't be used: {missing}")
    return "cpu"


def _missing_for_cuda() -> str | None:
    """Why CUDA can't be used and what to do, or None if it can."""
    if not nvml.gpus():
        return "the NVIDIA driver lists no GPU. Use --device cpu, or install the driver (see `agent doctor`)."
    if os.environ.get("CUDA_VISIBLE_DEVICES", "0").strip() in ("", "-1"):
        return "CUDA_VISIBLE_DEVICES hides every GPU. Unset it, or use --device cpu."
    try:
        built_for = find_toolchain(cuda=False).torch_cuda
    except ToolchainError as error:
        return f"{error}."
    if built_for is None:
        return (
            "the torch in this environment is a CPU build. Install a CUDA build "
            "(https://pytorch.org/get-started/locally), or use --device cpu."
        )
    return None


def examine() -> Iterator[Check]:
    """Look at everything a run needs, the most basic first."""
    toolchain: Toolchain | None = None
    try:
        toolchain = find_toolchain(cuda=False)
    except ToolchainError as error:
        yield Check("C++ and torch", ok=False, found="not usable", advice=str(error), needed=True)
    else:
        cuda = f"built for CUDA {toolchain.torch_cuda}" if toolchain.torch_cuda else "a CPU build"
        yield Check("torch", ok=True, found=f"{toolchain.torch_version}, {cuda}")
        yield Check("C++ compiler", ok=True, found=f"{toolchain.cxx} {toolchain.cxx_version}")
    yield Check(
        "processor", ok=True, found=f"{cpu.name()}, {cpu.usable_cores()} cores, {cpu.simd() or 'no SIMD known'}"
    )
    yield from _cuda(toolchain)
    yield _sandbox()
    yield _key()
    yield _kernelbench()
    yield Check(
        "model prices",
        ok=importlib.util.find_spec("genai_prices") is not None,
        found="genai-prices is installed" if importlib.util.find_spec("genai_prices") else "not installed",
        advice='costs are not counted and --max-cost can\'t be kept: run pip install "kernel-agent[prices]"',
    )


def _cuda(toolchain: Toolchain | None) -> Iterator[Check]:
    gpus = nvml.gpus()
    names = "; ".join(f"{gpu.name} (sm_{gpu.capability[0]}{gpu.capability[1]})" for gpu in gpus)
    yield Check(
        "GPU",
        ok=bool(gpus),
        found=f"{names}, driver {nvml.driver_version()}" if gpus else "none",
        advice="candidates are C++ on the processor; CUDA ones are only compiled. For a GPU, install its driver",
    )
    if gpus and (missing := _missing_for_cuda()):
        yield Check("CUDA", ok=False, found="a GPU is there and can't be used", advice=missing)
    try:
        compilers = find_all_nvcc()
        nvcc = compilers[0] if compilers else None
    except ToolchainError:
        compilers, nvcc = [], None
    others = f"; not used: {', '.join(f'{n.home} ({n.version})' for n in compilers[1:])}" if len(compilers) > 1 else ""
    yield Check(
        "nvcc",
        ok=nvcc is not None,
        found=f"{nvcc.home} {nvcc.version} ({nvcc.origin}){others}" if nvcc else "none",
        advice='CUDA candidates can\'t be built: run pip install "kernel-agent[nvcc]", or set CUDA_HOME to a toolkit',
        needed=bool(gpus),
    )
    if nvcc is None:
        return
    if toolchain is not None and toolchain.torch_cuda is not None:
        fits = nvcc.version.split(".")[0] == toolchain.torch_cuda.split(".")[0]
        yield Check(
            "nvcc and torch",
            ok=fits,
            found=f"nvcc {nvcc.short}, torch for CUDA {toolchain.torch_cuda}",
            advice="their major versions differ: set CUDA_HOME to a toolkit of torch's version",
        )
    newest = nvml.driver_cuda_version()
    if newest is not None:
        yield Check(
            "nvcc and driver",
            ok=int(nvcc.short.split(".")[0]) <= newest[0],
            found=f"nvcc {nvcc.short}, driver runs up to CUDA {newest[0]}.{newest[1]}",
            advice="the driver is older than the compiler: update the driver, or set CUDA_HOME to an older toolkit",
        )


def _sandbox() -> Check:
    level = probe_level()
    strongest = level is SandboxLevel.NAMESPACES
    return Check(
        "sandbox",
        ok=strongest,
        found=f"level {level.value}",
        advice="candidates run with resource limits only, since this kernel gives no user namespaces here: allow them "
        "(sysctl kernel.unprivileged_userns_clone=1, or run the container with --security-opt seccomp=unconfined), "
        "and run only models that you trust until then",
    )


def _key() -> Check:
    key = bool(os.environ.get("OPENAI_API_KEY", "").strip())
    base = os.environ.get("OPENAI_BASE_URL")
    return Check(
        "model",
        ok=key or base is not None,
        found=("OPENAI_API_KEY is set" if key else "no OPENAI_API_KEY")
        + (f", OPENAI_BASE_URL is {base}" if base else ""),
        advice="set OPENAI_API_KEY, or use --base-url of a local server, --mailbox DIR or --recorded NAME",
    )


def _kernelbench() -> Check:
    folder = os.environ.get("KERNELBENCH_DIR")
    there = folder is not None and Path(folder).is_dir()
    missing = f"KERNELBENCH_DIR={folder} is no folder" if folder else "KERNELBENCH_DIR is not set"
    return Check(
        "KernelBench",
        ok=there,
        found=folder if folder and there else missing,
        advice="kernelbench:… problems need a checkout: git clone https://github.com/ScalingIntelligence/KernelBench "
        "and set KERNELBENCH_DIR to it",
    )
