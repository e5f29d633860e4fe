"""`agent solve`: one problem, from prompt to confirmed kernel."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, INTERRUPTED, NONE_FOUND, fail, told

if TYPE_CHECKING:
    from rich.console import Console

    from agent.session import Solved


def solve(
    problem: options.ProblemArgument,
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    recorded: Annotated[
        str | None, typer.Option(help="Take the replies from a recorded run: its folder, or a bundled name.")
    ] = None,
    mailbox: Annotated[
        Path | None, typer.Option(help="Be the model: each prompt is written into this folder, the reply read from it.")
    ] = None,
    no_wait: options.NoWaitOption = False,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    max_turns: Annotated[int, typer.Option(min=1, help="End after so many replies of the model.")] = 20,
    max_cost: Annotated[float | None, typer.Option(help="End at so many US dollars; no limit if left out.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="End after so many minutes; no limit if left out.")] = None,
    precision: options.PrecisionOption = None,
    rule: options.RuleOption = "oracle",
    require_own_kernels: options.OwnKernelsOption = None,
    sandbox: options.SandboxOption = "auto",
    repair_inputs: options.RepairOption = False,
    allow_unjudgeable: options.AllowOption = False,
    compile: options.CompileOption = True,
    runs: options.RunsOption = Path("runs"),
    run_dir: Annotated[
        Path | None, typer.Option(help="Go on with the run in this folder; else the newest unfinished one, if any.")
    ] = None,
    new: Annotated[bool, typer.Option("--new", help="Start a new run even if one is unfinished.")] = False,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Let a model write kernels for PROBLEM, and keep the fastest correct one.

    The same command resumes the run that an earlier one left unfinished."""
    with told():
        from rich.console import Console

        from agent.progress import Progress
        from agent.session import Request, run_problem
        from agent.stops import StopReason

        if run_dir is not None and new:
            fail("--run-dir and --new exclude each other: one goes on with a run, the other starts one. Leave one out.")
        if run_dir is not None and not run_dir.is_dir():
            fail(f"There is no run folder {run_dir}. Leave --run-dir out: the same command finds its unfinished run.")
        options.folder("--runs", runs)
        source = options.model_source(model, base_url, recorded, mailbox, no_wait)
        limits = options.limits(max_turns, max_cost, max_minutes)
        settings = options.settings(
            device,
            size,
            precision,
            rule,
            require_own_kernels,
            sandbox,
            repair_inputs=repair_inputs,
            compile_baselines=compile,
        )
        spec = options.load(problem, kernelbench)
        request = Request(
            spec=spec,
            settings=options.fitted(settings, spec),
            limits=limits,
            source=source,
            runs=runs,
            run_dir=run_dir,
            fresh=new,
            allow_unjudgeable=allow_unjudgeable,
        )
        console = Console(highlight=False)
        if source.written_for not in (None, spec.name):
            console.print(
                f"These replies were written for {source.written_for}: they hardly fit {spec.name}.",
                markup=False,
                soft_wrap=True,
            )
        solved = run_problem(request, Progress(console))
        print_outcome(console, solved)
        if solved.result.reason == StopReason.INTERRUPTED and not solved.already:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(FOUND if solved.result.solved else NONE_FOUND)


def _ratio(value: float | None, low: float | None, high: float | None) -> str:
    """`1.42x (95% interval 1.4 to 1.44)`."""
    if value is None:
        return "not known"
    return f"{value:.3g}x" + ("" if low is None or high is None else f" (95% interval {low:.3g} to {high:.3g})")


def print_outcome(console: Console, solved: Solved) -> None:
    """The last lines of a run: the speed-up with its interval, and where the kernel is; or why there is none."""
    from rich.text import Text

    from agent.stops import StopReason
    from prompts.formats import count, duration

    def say(line: str, style: str = "") -> None:
        # Whole lines, and brackets in the name of a folder are no markup.
        console.print(Text(line, style=style), soft_wrap=True)

    result, folder = solved.result, solved.folder
    if solved.already:
        say(f"This run had finished before ({result.reason.replace('_', ' ')}).")
    if result.solved:
        say(f"\nCorrect, and confirmed in a fresh process with a stock build: {result.kernel}", style="bold green")
        if result.speedup is not None and result.time_us is not None:
            eager = _ratio(result.speedup, result.speedup_low, result.speedup_high)
            over = _ratio(result.speedup_over_best, result.speedup_over_best_low, result.speedup_over_best_high)
            best, timed, time = result.best_baseline, " and ".join(result.baselines), duration(result.time_us)
            if len(result.baselines) < 2:
                say(f"Speed-up over the reference (eager): {eager}, {time}", style="bold")
            elif best == "eager":
                say(f"Speed-up over the reference (eager, the best of {timed}): {eager}, {time}", style="bold")
            else:
                say(
                    f"Speed-up over the best baseline ({best}, of {timed}): {over}, {time}",
                    style="bold",
                )
                say(f"Over the reference (eager): {eager}")
        say(f"Kernel: {folder / 'solution.py'}")
    else:
        say(
            f"\nNo correct kernel: {count(result.candidates, 'candidate')} in {count(result.turns, 'turn')} "
            f"(ended by: {result.reason.replace('_', ' ')}).",
            style="bold red",
        )
        if result.not_confirmed:
            say(f"Correct at first, but not in the confirmation: {', '.join(result.not_confirmed)}")
    say(f"Review: agent replay {folder}")
    if result.reason == StopReason.INTERRUPTED:
        say("Interrupted: the same command goes on from here.")
