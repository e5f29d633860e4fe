"""The commands and how they hang together."""

from __future__ import annotations

from typing import Annotated

import typer

from agent.cli import batch, doctor, evaluate, problems, replay, solve

app = typer.Typer(
    name="agent",
    help="Writes, judges and times CUDA kernels for PyTorch modules, and shows its evidence.",
    epilog="Exit codes: 0 a correct kernel was found, 1 none was, 2 unusable input, 75 a reply is awaited, "
    "130 interrupted.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def _version(asked: bool) -> None:
    """Print the name and version of the installed package, and end."""
    if not asked:
        return
    from importlib.metadata import PackageNotFoundError, metadata

    try:
        package = metadata("kernel-agent")
    except PackageNotFoundError:
        print("kernel-agent, of no known version: it is not installed. Run `pip install -e .` in its folder.")
    else:
        print(f"{package['Name']} {package['Version']}")
    raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show name and version, and exit.")
    ] = False,
) -> None:
    """The options of `agent` itself. The help text is that of `app`."""


app.command("solve")(solve.solve)
app.command("batch")(batch.batch)
app.command("evaluate")(evaluate.evaluate)
app.command("replay")(replay.replay)
app.command("doctor")(doctor.doctor)
app.add_typer(problems.app, name="problems")


def main() -> None:
    """The entry point of the console script."""
    app()
