"""`agent batch`: a set of problems, one after another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, INTERRUPTED, NONE_FOUND, fail, told

if TYPE_CHECKING:
    from rich.table import Table

    from agent.batch import Row
    from agent.result import RunResult


def batch(
    of: Annotated[
        str,
        typer.Argument(
            metavar="SET",
            help="A bundled set (`agent problems list`), a folder of problem files, a glob, kernelbench:1, or a .txt "
            "file with one of these on a line.",
        ),
    ],
    model: options.ModelOption = None,
    base_url: options.BaseUrlOption = None,
    recorded: Annotated[
        Path | None,
        typer.Option(help="Take the replies from recorded runs: a folder of them, such as an earlier batch's."),
    ] = None,
    mailbox: Annotated[
        Path | None, typer.Option(help="Be the model: a folder that gets a mailbox for each problem, of its name.")
    ] = None,
    no_wait: options.NoWaitOption = False,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    max_turns: Annotated[int, typer.Option(min=1, help="End a problem after so many replies of the model.")] = 20,
    max_cost: Annotated[
        float | None, typer.Option(help="End a problem at so many US dollars; no limit if left out.")
    ] = None,
    max_minutes: Annotated[
        float | None, typer.Option(help="End a problem after so many minutes; no limit if left out.")
    ] = None,
    precision: options.PrecisionOption = None,
    rule: options.RuleOption = "oracle",
    require_own_kernels: options.OwnKernelsOption = None,
    sandbox: options.SandboxOption = "auto",
    repair_inputs: options.RepairOption = False,
    allow_unjudgeable: options.AllowOption = False,
    compile: options.CompileOption = True,
    runs: options.RunsOption = Path("runs"),
    new: Annotated[bool, typer.Option("--new", help="Start a new batch even if one is unfinished.")] = False,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Solve every problem of SET, one after another, and print a table at the end.

    The same command goes on with the batch that an earlier one left unfinished. Exits 0 if every problem was solved."""
    with told():
        from rich.console import Console

        from agent.batch import Asked, Batch, run_batch
        from agent.progress import Progress
        from agent.session import Request
        from agent.sources import recordings
        from agent.stops import StopReason
        from problems import ProblemError, distinct_names, resolve_set

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
        options.check_source(model, base_url, str(recorded) if recorded else None, mailbox, no_wait)
        options.folder("--runs", runs)
        problems = resolve_set(of, kernelbench_dir=kernelbench)
        names = distinct_names(problems, kernelbench_dir=kernelbench)
        replies = recordings(recorded) if recorded else {}
        if recorded and not replies.keys() & {*names.values()}:
            fail(_nothing_recorded(recorded, replies, of))

        def request(problem: str) -> Request:
            spec = options.load(problem, kernelbench)
            spec = spec.model_copy(update={"name": names.get(problem, spec.name)})
            if recorded and spec.name not in replies:
                raise ProblemError(f"{recorded} holds no recorded run of {spec.name}.")
            recording = str(replies[spec.name]) if recorded else None
            box = mailbox / spec.name if mailbox else None
            return Request(
                spec=spec,
                settings=options.fitted(settings, spec),
                limits=limits,
                source=options.model_source(model, base_url, recording, box, no_wait),
                runs=runs,
                allow_unjudgeable=allow_unjudgeable,
            )

        asked = Asked(
            of=of,
            problems=tuple(problems),
            options={
                "model": model or (f"recorded:{recorded}" if recorded else f"mailbox:{mailbox}"),
                "base_url": base_url,
                "allow_unjudgeable": allow_unjudgeable,
                "settings": settings.model_dump(mode="json", exclude={"cache_dir"}),
            },
        )
        work = Batch.take_up(runs, asked, fresh=new)
        console = Console(highlight=False)
        for name, of_it in _renamed(problems, names, kernelbench).items():
            console.print(
                f"Several problems are named {name}. In the names of folders, "
                + " and ".join(f"{ref} is {chosen}" for ref, chosen in of_it.items())
                + ".",
                markup=False,
                soft_wrap=True,
            )
        rows: list[Row] = []
        for row in run_batch(work, request, lambda: Progress(console)):
            rows.append(row)
            console.print(
                f"[{len(rows)}/{len(asked.problems)}] {row.problem}: {_outcome(row)}", markup=False, soft_wrap=True
            )
        console.print(_table(rows))
        solved = sum(row.result is not None and row.result.solved for row in rows)
        console.print(f"{solved} of {len(asked.problems)} solved. Runs: {work.folder}", markup=False, soft_wrap=True)
        if rows and rows[-1].result is not None and rows[-1].result.reason == StopReason.INTERRUPTED:
            raise typer.Exit(INTERRUPTED)
        raise typer.Exit(FOUND if solved == len(asked.problems) else NONE_FOUND)


def _nothing_recorded(folder: Path, replies: dict[str, Path], of: str) -> str:
    """Why `--recorded` can't be used at all, and what to name in its place."""
    if not folder.is_dir():
        return (
            f"There is no folder {folder}. Name one of run folders with --recorded, such as that of an earlier batch."
        )
    if not replies:
        what = "no run folder with a reply in it. Name a folder of them"
        return f"{folder} holds {what} with --recorded, such as that of an earlier batch."
    return f"{folder} holds no run of a problem of {of}. It holds runs of: {', '.join(sorted(replies))}."


def _renamed(problems: list[str], names: dict[str, str], kernelbench: Path | None) -> dict[str, dict[str, str]]:
    """The problems whose own name others have too, and the name that each got: by their own name, then by problem."""
    from problems import locate_problem

    renamed: dict[str, dict[str, str]] = {}
    for problem in problems:
        if problem in names:
            own, _ = locate_problem(problem, kernelbench_dir=kernelbench)
            if own != names[problem]:
                renamed.setdefault(own, {})[problem] = names[problem]
    return renamed


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


def _compared(result: RunResult, named: bool) -> str:
    """The speed-up over the best baseline; `named` with which it is, and whether it was the only one."""
    if result.speedup_over_best is None:
        return ""
    which = f" ({result.best_baseline}{'' if len(result.baselines) > 1 else ' alone'})" if named else ""
    return f"{result.speedup_over_best:.3g}x{which}"


def _table(rows: list[Row]) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    names = _short_names([row.problem for row in rows])
    problem = Column("problem", overflow="fold", min_width=min(max(map(len, names), default=0), 32))
    several = any(row.result is not None and len(row.result.baselines) > 1 for row in rows)
    compared = "over the best baseline" if several else "over eager"
    table = Table(problem, "outcome", compared, "turns", "minutes", "USD")
    for row, name in zip(rows, names, strict=True):
        result = row.result
        if result is None:
            table.add_row(Text(name), "not run (see above)", "", "", "", "")
            continue
        table.add_row(
            Text(name),
            _outcome(row),
            _compared(result, several),
            str(result.turns),
            f"{result.seconds / 60:.1f}",
            "" if result.cost_usd is None else f"{result.cost_usd:.2f}",
        )
    return table
