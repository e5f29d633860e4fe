"""`agent batch`: a set of problems, one after another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, INTERRUPTED, NONE_FOUND, told

if TYPE_CHECKING:
    from rich.table import Table

    from agent.batch import Row


def batch(
    of: Annotated[
        str, typer.Argument(metavar="SET", help="A bundled set, a folder, a glob, kernelbench:1, or a list in a file.")
    ],
    model: Annotated[str | None, typer.Option(help="The model's name at an OpenAI-compatible endpoint.")] = None,
    base_url: Annotated[str | None, typer.Option(help="That endpoint; OpenAI's own if left out.")] = None,
    mailbox: Annotated[
        Path | None, typer.Option(help="A folder with one mailbox per problem, named after the problem.")
    ] = None,
    no_wait: Annotated[bool, typer.Option("--no-wait", help="With --mailbox: exit 75 when a reply is due.")] = False,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    max_turns: Annotated[int, typer.Option(min=1, help="Replies of the model, for each problem.")] = 20,
    max_cost: Annotated[float | None, typer.Option(help="US dollars, for each problem.")] = None,
    max_minutes: Annotated[float | None, typer.Option(help="Wall-clock minutes, for each problem.")] = None,
    precision: options.PrecisionOption = None,
    rule: options.RuleOption = "oracle",
    require_own_kernels: options.OwnKernelsOption = None,
    sandbox: options.SandboxOption = "auto",
    repair_inputs: options.RepairOption = False,
    allow_unjudgeable: options.AllowOption = False,
    compile: options.CompileOption = True,
    runs: options.RunsOption = Path("runs"),
    new: Annotated[bool, typer.Option("--new", help="Start a new batch although one is unfinished.")] = False,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Solve every problem of SET, one after another, and print a table at the end.

    The same command goes on with the batch that an earlier one left unfinished. Exits 0 if every problem was solved."""
    with told():
        from rich.console import Console

        from agent.batch import Asked, Batch, run_batch
        from agent.progress import Progress
        from agent.session import Request
        from agent.stops import StopReason
        from problems import resolve_set

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
        limits = options.limits(max_turns, max_cost, max_minutes)
        # Said before anything runs: a missing model is no matter of one problem.
        options.model_source(model, base_url, None, mailbox, no_wait)

        def request(problem: str) -> Request:
            spec = options.load(problem, kernelbench)
            box = mailbox / spec.name if mailbox else None
            return Request(
                spec=spec,
                settings=options.fitted(settings, spec),
                limits=limits,
                source=options.model_source(model, base_url, None, box, no_wait),
                runs=runs,
                allow_unjudgeable=allow_unjudgeable,
            )

        asked = Asked(
            of=of,
            problems=tuple(resolve_set(of, kernelbench_dir=kernelbench)),
            options={
                "model": model or f"mailbox:{mailbox}",
                "base_url": base_url,
                "allow_unjudgeable": allow_unjudgeable,
                "settings": settings.model_dump(mode="json", exclude={"cache_dir"}),
            },
        )
        work = Batch.take_up(runs, asked, fresh=new)
        console = Console(highlight=False)
        rows: list[Row] = []
        for row in run_batch(work, request, lambda: Progress(console)):
            rows.append(row)
            console.print(
                f"[{len(rows)}/{len(asked.problems)}] {row.problem}: {_outcome(row)}", markup=False, soft_wrap=True
            )
        console.print(_table(rows))
        solved = sum(row.result is not None and row.result.solved for row in rows)
        console.print(f"{solved} of {len(asked.problems)} solved. Runs: {work.folder}", soft_wrap=True)
        if rows and rows[-1].result is not None and rows[-1].result.reason == StopReason.INTERRUPTED:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(FOUND if solved == len(asked.problems) else NONE_FOUND)


def _short_names(problems: list[str]) -> list[str]:
    """Files without the folder that they all share, which would leave no room for what tells them apart."""
    paths = [Path(problem) for problem in problems]
    if not all(path.suffix == ".py" for path in paths) or len({path.is_absolute() for path in paths}) != 1:
        return problems
    shared = os.path.commonpath([path.parent for path in paths])
    return [str(path.relative_to(shared)) for path in paths]


def _outcome(row: Row) -> str:
    if row.result is None:
        return f"not run: {row.failure}"
    if not row.result.solved or row.result.speedup is None:
        return "no correct kernel"
    return f"{row.result.speedup:.3g}x ({row.result.speedup_low:.3g} to {row.result.speedup_high:.3g})"


def _table(rows: list[Row]) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    names = _short_names([row.problem for row in rows])
    problem = Column("problem", overflow="fold", min_width=min(max(map(len, names), default=0), 32))
    table = Table(problem, "outcome", "over the best baseline", "turns", "minutes", "USD")
    for row, name in zip(rows, names, strict=True):
        result = row.result
        if result is None:
            table.add_row(Text(name), "not run (see above)", "", "", "", "")
            continue
        table.add_row(
            Text(name),
            _outcome(row),
            "" if result.speedup_over_best is None else f"{result.speedup_over_best:.3g}x ({result.best_baseline})",
            str(result.turns),
            f"{result.seconds / 60:.1f}",
            "" if result.cost_usd is None else f"{result.cost_usd:.2f}",
        )
    return table
