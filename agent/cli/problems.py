"""`agent problems`: the bundled sets, one problem, and whether a problem can be judged."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, NONE_FOUND, UNUSABLE, fail, told

if TYPE_CHECKING:
    from problems import ProblemSpec
    from tools.evaluator import EvaluatorSettings
    from tools.types import ProblemFacts

app = typer.Typer(help="List, show and check problems.", no_args_is_help=True)


@app.command("list")
def list_(
    of: Annotated[
        str | None, typer.Argument(metavar="SET", help="A bundled set, a folder or a glob; else all bundled sets.")
    ] = None,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Print the problems of a set with what each is about."""
    with told(kept=False):
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
def show(problem: options.ProblemArgument, kernelbench: options.KernelBenchOption = None) -> None:
    """Print one problem: its source and what can be read off it without running it."""
    with told(kept=False):
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
    problems: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PROBLEM|SET]...", help="Problem files, bundled names, folders or sets; else all bundled."
        ),
    ] = None,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    rule: options.RuleOption = "oracle",
    precision: options.PrecisionOption = None,
    repair_inputs: options.RepairOption = False,
    sandbox: options.SandboxOption = "auto",
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Say whether problems can be judged here: would an answer without work pass, does the reference agree with itself?

    Exits 0 if all can, 1 if one can't, 2 if one can't be used at all."""
    with told(kept=False):
        from problems import SETS, ProblemError, distinct_names

        refs = _known(problems or list(SETS), kernelbench)
        names = distinct_names(refs, kernelbench_dir=kernelbench)
        chosen = options.settings(
            device, size, precision, rule, sandbox=sandbox, repair_inputs=repair_inputs, compile_baselines=False
        )
        codes: list[int] = []
        for ref in refs:
            try:
                spec = options.load(ref, kernelbench)
                spec = spec.model_copy(update={"name": names.get(ref, spec.name)})
                codes.append(_check(spec, chosen, alone=len(refs) == 1))
            except ProblemError as error:
                if len(refs) == 1:
                    raise
                print(f"{ref}: can't be used. {error}", flush=True)
                codes.append(UNUSABLE)
        if len(refs) > 1:
            print(f"{codes.count(FOUND)} of {len(codes)} can be judged.")
        raise typer.Exit(max(codes))


def _known(names: list[str], kernelbench: Path | None) -> list[str]:
    """The problems that `names` mean, each once. Ends the command if one of them means none, and names all such."""
    from problems import ProblemError, locate_problem, resolve_set

    refs: list[str] = []
    unknown: list[str] = []
    for name in names:
        try:
            meant = resolve_set(name, kernelbench_dir=kernelbench)
            for ref in meant:
                locate_problem(ref, kernelbench_dir=kernelbench)
            refs += meant
        except ProblemError as error:
            unknown.append(str(error))
    if unknown:
        fail("\n".join([*dict.fromkeys(unknown), *(["Nothing was checked."] if len(names) > 1 else [])]))
    return list(dict.fromkeys(refs))


def _check(spec: ProblemSpec, settings: EvaluatorSettings, *, alone: bool) -> int:
    """Print what is found of one problem; in full, with what was measured, if it is the only one."""
    from tools.evaluator import Evaluator

    settings = options.fitted(settings, spec)
    with Evaluator(spec, settings) as evaluator:
        found = evaluator.soundness()
        facts = evaluator.facts() if alone and found.judgeable else None
    if facts is not None:
        _print_facts(spec.name, facts)
    print(f"{spec.name}: {'can be judged' if found.judgeable else 'can NOT be judged'} ({settings.size} size)")
    for note in found.notes:
        print(f"  {note.severity} {note.code}: {note.summary}", flush=True)
    if not found.judgeable and not settings.repair_inputs:
        print("  --repair-inputs looks for inputs and weights under which it can, here and in `agent solve`.")
    return FOUND if found.judgeable else NONE_FOUND


def _print_facts(name: str, facts: ProblemFacts) -> None:
    from prompts.formats import duration, quantity

    print(f"{name} on {facts.device.name}")
    for title, lines in (("inputs", facts.inputs), ("outputs", facts.outputs), ("parameters", facts.parameters)):
        print(f"  {title}: {'; '.join(lines) or 'none'}")
    print(f"  reference precision: {facts.reference_precision}")
    print(f"  moves {quantity(facts.bytes_moved, 'B')}, computes {quantity(facts.flops, 'FLOP')}")
    print(f"  floor: {duration(facts.floor_us)} ({facts.floor_limited_by})")
    for baseline, time in facts.baselines_us.items():
        print(f"  {baseline}: {duration(time)}")


def _pairs(value: object) -> list[tuple[object, object]]:
    if isinstance(value, dict):
        return list(value.items())
    if isinstance(value, (list, tuple)):
        return [(item, item) for item in value]
    return [(value, value)]
