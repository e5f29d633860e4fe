"""Options that several commands share, and what they resolve to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from agent.budget import Limits
    from agent.sources import ModelSource
    from problems import ProblemSpec
    from tools.evaluator import EvaluatorSettings

Device = Literal["auto", "cuda", "cpu"]
Size = Literal["auto", "full", "small"]
Precision = Literal["fp64", "fp32", "tf32", "fp16", "bf16"]
Rule = Literal["oracle", "kernelbench"]
Sandbox = Literal["auto", "strict"]

ProblemArgument = Annotated[
    str,
    typer.Argument(
        metavar="PROBLEM",
        help="A problem file, the name of a bundled problem (`agent problems list`), or kernelbench:1/87.",
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(help="Ask the model of this name at an OpenAI-compatible endpoint; its key is in OPENAI_API_KEY."),
]
BaseUrlOption = Annotated[
    str | None,
    typer.Option(help="With --model: the endpoint, like http://127.0.0.1:8000/v1; OpenAI's own if left out."),
]
NoWaitOption = Annotated[
    bool,
    typer.Option("--no-wait", help="With --mailbox: exit (75) where a reply is due; the same command goes on."),
]
DeviceOption = Annotated[Device, typer.Option(help="Where to run: auto takes the GPU if there is one, else the CPU.")]
SizeOption = Annotated[
    Size,
    typer.Option(
        help="full: the problem as it stands. small: with the values of its SMALL, for a laptop; a problem without "
        "SMALL stays full. auto: full on cuda, small on cpu."
    ),
]
PrecisionOption = Annotated[
    Precision | None,
    typer.Option(help="How precise outputs must be: as this class of arithmetic; as the reference's own if left out."),
]
RuleOption = Annotated[
    Rule,
    typer.Option(
        help="What outputs are compared with. oracle: the reference in fp64. kernelbench: the reference as it runs, "
        "by a plain allclose."
    ),
]
OwnKernelsOption = Annotated[
    float | None,
    typer.Option(
        min=0.0,
        max=1.0,
        help="Least share of the time (0.5 is half) that must be spent in the candidate's own kernels, not in those of "
        "PyTorch; any share will do if left out.",
    ),
]
RepairOption = Annotated[
    bool,
    typer.Option(
        "--repair-inputs",
        help="Where every answer would pass with the problem's own inputs or weights, take others of the same shapes.",
    ),
]
AllowOption = Annotated[
    bool, typer.Option("--allow-unjudgeable", help="Go on with a problem for which a wrong answer might pass.")
]
SandboxOption = Annotated[
    Sandbox,
    typer.Option(
        help="auto: run candidates as well isolated as this machine can. strict: run none below full isolation."
    ),
]
KernelBenchOption = Annotated[
    Path | None,
    typer.Option("--kernelbench", help="A KernelBench checkout, for kernelbench:…; else KERNELBENCH_DIR names it."),
]
CompileOption = Annotated[
    bool, typer.Option("--compile/--no-compile", help="Time torch.compile too, beside eager PyTorch (takes a while).")
]
RunsOption = Annotated[Path, typer.Option(help="The folder in which run folders are made, and looked for.")]


def load(problem: str, kernelbench: Path | None) -> ProblemSpec:
    from problems import load_problem

    return load_problem(problem, kernelbench_dir=kernelbench)


def settings(
    device: Device,
    size: Size,
    precision: Precision | None = None,
    rule: Rule = "oracle",
    require_own_kernels: float | None = None,
    sandbox: Sandbox = "auto",
    *,
    repair_inputs: bool = False,
    compile_baselines: bool = True,
) -> EvaluatorSettings:
    """The evaluator's settings with every `auto` but the sandbox's resolved on this machine."""
    from agent.machine import resolve_device
    from tools.evaluator import EvaluatorSettings
    from tools.types import PrecisionClass

    kind = resolve_device(device)
    return EvaluatorSettings(
        device=kind,
        size=("full" if kind == "cuda" else "small") if size == "auto" else size,
        sandbox=sandbox,
        rule=rule,
        precision=PrecisionClass(precision) if precision else None,
        require_own_kernels=require_own_kernels,
        repair_inputs=repair_inputs,
        compile_baselines=compile_baselines,
    )


def fitted(settings: EvaluatorSettings, spec: ProblemSpec) -> EvaluatorSettings:
    """The settings for one problem: a problem that defines no other size runs at its full one, and is said to."""
    return settings if settings.size in spec.sizes else settings.model_copy(update={"size": "full"})


def limits(max_turns: int, max_cost: float | None, max_minutes: float | None) -> Limits:
    """What a run may spend. Ends the command where nothing could be spent at all."""
    from agent.budget import Limits
    from agent.cli.errors import fail

    for name, value in (("--max-cost", max_cost), ("--max-minutes", max_minutes)):
        if value is not None and not value > 0:
            fail(f"{name} {value:g} leaves nothing to spend. Give a number above 0, or leave {name} out.")
    return Limits(max_turns=max_turns, max_cost=max_cost, max_minutes=max_minutes)


def folder(option: str, path: Path | None) -> None:
    """End the command where what should be a folder, or become one, is a file, or lies below one."""
    from agent.cli.errors import fail

    if path is None:
        return
    there = next((part for part in (path, *path.parents) if part.exists()), path)
    if there.exists() and not there.is_dir():
        fail(f"{option} {path} can't be a folder: {there} is a file. Name another one; it is made if it isn't there.")


def check_source(
    model: str | None, base_url: str | None, recorded: str | None, mailbox: Path | None, no_wait: bool
) -> None:
    """End the command unless exactly one of the three is given, with no option that goes with another."""
    from agent.cli.errors import fail

    given = [name for name, value in (("--model", model), ("--recorded", recorded), ("--mailbox", mailbox)) if value]
    if len(given) != 1:
        fail(
            f"{' and '.join(given)} exclude each other: give one of them."
            if given
            else "Say where replies come from: --model NAME (with OPENAI_API_KEY, or --base-url of a local server), "
            "--recorded RUN (the replies of a recorded run; for a batch, of a folder of them), "
            "or --mailbox DIR (you, or a coding assistant, answer)."
        )
    if base_url and not model:
        fail(f"--base-url goes with --model NAME. Leave it out: {given[0]} asks no endpoint.")
    folder("--mailbox", mailbox)
    if no_wait and not mailbox:
        fail(f"--no-wait goes with --mailbox DIR. Leave it out: {given[0]} waits for nobody.")


def model_source(
    model: str | None, base_url: str | None, recorded: str | None, mailbox: Path | None, no_wait: bool
) -> ModelSource:
    """Where replies come from. Exactly one of the three must be given."""
    from agent import sources

    check_source(model, base_url, recorded, mailbox, no_wait)
    if model:
        return sources.openai_source(model, base_url)
    if recorded:
        return sources.recorded_source(recorded)
    assert mailbox is not None
    return sources.mailbox_source(mailbox, wait=not no_wait)
