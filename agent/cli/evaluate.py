"""`agent evaluate`: judge one candidate file, with no model."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated

import typer

from agent.cli import options
from agent.cli.errors import FOUND, NONE_FOUND, fail, told


def evaluate(
    problem: options.ProblemArgument,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The candidate: a Python file that defines ModelNew.")],
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
    device: options.DeviceOption = "auto",
    size: options.SizeOption = "auto",
    precision: options.PrecisionOption = None,
    rule: options.RuleOption = "oracle",
    require_own_kernels: options.OwnKernelsOption = None,
    sandbox: options.SandboxOption = "auto",
    repair_inputs: options.RepairOption = False,
    stock: Annotated[
        bool,
        typer.Option(
            "--stock", help="Build as plain load_inline does, slowly, in fresh processes; else in the fast way."
        ),
    ] = False,
    kernelbench: options.KernelBenchOption = None,
) -> None:
    """Build, check and time the candidate FILE for PROBLEM."""
    with told(kept=False):
        from rich.console import Console

        from agent.progress import Progress
        from prompts import render
        from tools.candidates import clean_source
        from tools.evaluator import Evaluator
        from tools.reports import KernelReport
        from tools.types import Judgement, Verdict

        try:
            source = clean_source(file.read_text(encoding="utf-8"))
        except FileNotFoundError:
            fail(f"There is no file {file}. Name the Python file that defines ModelNew.")
        except IsADirectoryError:
            fail(f"{file} is a folder. Name the Python file that defines ModelNew.")
        except UnicodeDecodeError as error:
            fail(f"{file} can't be read as UTF-8 (byte {error.start}). Name the Python file that defines ModelNew.")
        except OSError as error:
            fail(f"{file} can't be read: {error.strerror}. Name the Python file that defines ModelNew.")
        if not source:
            fail(f"{file} is empty. It must define ModelNew.")
        spec = options.load(problem, kernelbench)
        chosen = options.settings(
            device,
            size,
            precision,
            rule,
            require_own_kernels,
            sandbox,
            repair_inputs=repair_inputs,
            compile_baselines=False,
        )
        chosen = options.fitted(chosen, spec)
        with (
            tempfile.TemporaryDirectory(prefix="kernel-agent-") as folder,
            Progress(Console(highlight=False), quiet=json) as progress,
            Evaluator(spec, chosen) as evaluator,
        ):
            progress.opening(f"{spec.name} ({chosen.size} size, {chosen.device})")
            if stock:
                result = evaluator.confirm(source, Path(folder))
            else:
                result = evaluator.evaluate(source, Path(folder), stage=lambda stage: progress.stage(file.name, stage))
        # It lay in the folder that is gone by now; what it said is in the diagnostics.
        result = result.model_copy(update={"build": result.build.model_copy(update={"log_path": None})})
        if json:
            judged = Judgement(
                **dict(result),
                problem=spec.name,
                file=str(file),
                device=chosen.device,
                size=chosen.size,
                rule=chosen.rule,
                precision=chosen.precision,
            )
            print(judged.model_dump_json(indent=2))
        else:
            report = KernelReport(
                kernel=file.name,
                asked="time",
                verdict=result.verdict,
                build=result.build,
                correctness=result.correctness,
                timing=result.timing,
            )
            print(render("kernel", report=report), end="")
        raise typer.Exit(FOUND if result.verdict is Verdict.CORRECT else NONE_FOUND)
