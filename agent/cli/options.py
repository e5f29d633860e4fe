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

DeviceOption = Annotated[Device, typer.Option(help="Where to run: auto takes the GPU if there is one.")]
SizeOption = Annotated[
    Size, typer.Option(help="auto is full on cuda, small on cpu. A problem without SMALL has only its full size.")
]
PrecisionOption = Annotated[
    Precision | None, typer.Option(help="Demand (or allow) this precision class in place of the reference's own.")
]
RuleOption = Annotated[Rule, typer.Option(help="oracle: against fp64. kernelbench: plain allclose.")]
OwnKernelsOption = Annotated[
    float | None,
    typer.Option(min=0.0, max=1.0, help="Least share of the time that must be spent in the candidate's own kernels."),
]
RepairOption = Annotated[
    bool,
    typer.Option(
        "--repair-inputs",
        help="Where the problem's own inputs or weights mean nothing, take others of the same shapes.",
    ),
]
AllowOption = Annotated[
    bool, typer.Option("--allow-unjudgeable", help="Go on although a verdict on the problem says nothing.")
]
SandboxOption = Annotated[
    Sandbox, typer.Option(help="strict: refuse to run candidates below full isolation. auto: the best there is.")
]
KernelBenchOption = Annotated[
    Path | None, typer.Option("--kernelbench", help="A KernelBench checkout, for kernelbench:… problems.")
]
CompileOption = Annotated[
    bool, typer.Option("--compile/--no-compile", help="Measure torch.compile as a baseline too (takes a while).")
]
RunsOption = Annotated[Path, typer.Option(help="The folder in which run folders are made.")]


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


def model_source(
    model: str | None, base_url: str | None, recorded: str | None, mailbox: Path | None, no_wait: bool
) -> ModelSource:
    """Where replies come from. Exactly one of the three must be given."""
    from agent import sources
    from agent.cli.errors import fail

    given = [name for name, value in (("--model", model), ("--recorded", recorded), ("--mailbox", mailbox)) if value]
    if len(given) != 1:
        fail(
            f"{' and '.join(given)} exclude each other: give one of them."
            if given
            else "Say where replies come from: --model NAME (with OPENAI_API_KEY, or --base-url of a local server), "
            "--recorded NAME (replies from a transcript), or --mailbox DIR (you, or a coding assistant, answer)."
        )
    if no_wait and not mailbox:
        fail(f"--no-wait goes with --mailbox DIR. Leave it out: {given[0]} waits for nobody.")
    if model:
        return sources.openai_source(model, base_url)
    if recorded:
        return sources.recorded_source(recorded)
    assert mailbox is not None
    return sources.mailbox_source(mailbox, wait=not no_wait)
