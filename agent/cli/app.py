"""The commands and how they hang together."""

from __future__ import annotations

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
app.command("solve")(solve.solve)
app.command("batch")(batch.batch)
app.command("evaluate")(evaluate.evaluate)
app.command("replay")(replay.replay)
app.command("doctor")(doctor.doctor)
app.add_typer(problems.app, name="problems")


def main() -> None:
    """The entry point of the console script."""
    app()
