"""`agent problems`: the bundled sets, one problem, and whether a problem can be judged."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, NONE_FOUND, told

app = typer.Typer(help="List, show and check problems.", no_args_is_help=True)
Problem = Annotated[str, typer.Argument(help="A path, a bundled problem, or kernelbench:1/87.")]


@app.command("list")
def list_(
    of: Annotated[str | None, typer.Argument(metavar="SET", help="A set, folder or glob; else all bundled.")] = None,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Print the problems of a set with what each is about."""
    with told():
        from problems import SETS, ProblemError, analyse, load_problem, resolve_set

        for name in [of] if of else SETS:
            print(f"{name}: {SETS[name]}" if name in SETS else name)
            for ref in resolve_set(name, kernelbench_dir=kernelbench):
                try:
                    spec = load_problem(ref, kernelbench_dir=kernelbench)
                    about = analyse(spec.source).summary or "no description"
                except ProblemError as error:
                    about = f"unusable: {error}"
                print(f"  {ref:32} {about}")


@app.command()
def show(problem: Problem, kernelbench: options.KernelBenchOption = None) -> None:
    """Print one problem: its source and what can be read off it without running it."""
    with told():
        from problems import analyse

        spec = options.load(problem, kernelbench)
        print(spec.source.rstrip(), end="\n\n")
        print(f"# {spec.name} ({spec.path or spec.origin}), sizes: {', '.join(spec.sizes)}")
        for name, value in analyse(spec.source).model_dump().items():
            if value:
                shown = ", ".join(f"{k} = {v}" if isinstance(value, dict) else str(k) for k, v in _pairs(value))
                print(f"# {name.replace('_', ' ')}: {shown}")


@app.command()
def check(
    problem: Problem,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    sandbox: options.SandboxOption = "auto",
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Run the reference and say whether the problem can be judged here. Exits 1 if it can't."""
    with told():
        from tools.evaluator import Evaluator

        from prompts.formats import duration, quantity

        spec = options.load(problem, kernelbench)
        with Evaluator(spec, options.settings(device, size, sandbox=sandbox, compile_baselines=False)) as evaluator:
            facts = evaluator.facts()
        print(f"{spec.name} on {facts.device.name}")
        for title, lines in (("inputs", facts.inputs), ("outputs", facts.outputs), ("parameters", facts.parameters)):
            print(f"  {title}: {'; '.join(lines) or 'none'}")
        print(f"  reference precision: {facts.reference_precision}")
        print(f"  moves {quantity(facts.bytes_moved, 'B')}, computes {quantity(facts.flops, 'FLOP')}")
        print(f"  floor: {duration(facts.floor_us)} ({facts.floor_limited_by})")
        for name, time in facts.baselines_us.items():
            print(f"  {name}: {duration(time)}")
        for note in facts.judge_notes:
            print(f"  {note.severity}: {note.summary}")
        print("It can be judged." if facts.judgeable else "It can't be judged, for the reasons above.")
        raise typer.Exit(FOUND if facts.judgeable else NONE_FOUND)


def _pairs(value: object) -> list[tuple[object, object]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return [(item, item) for item in value]
    return [(value, value)]
