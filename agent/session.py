"""Setting up a run, or taking up the one that the same command began, and running it to its end."""

from __future__ import annotations

import platform
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from agent.budget import Limits
from agent.config import RunConfig
from agent.interrupts import Interrupts
from agent.loop import solve
from agent.progress import Progress
from agent.result import RunResult
from agent.run import Run, as_json
from agent.sources import ModelSource
from agent.stops import Abandoned
from problems import ProblemError, ProblemSpec
from tools.evaluator import Evaluator, EvaluatorError, EvaluatorSettings
from tools.types import ProblemFacts
from transcripts import RestoredRun, RunFolder, TranscriptError, find_unfinished, is_live, read_events, restore
from transcripts.events import Resumed, RunStarted, ToolResult
from transcripts.reading import RESUMABLE


@dataclass(frozen=True)
class Request:
    """What a command asks for. `run_dir` names a run to take up; `fresh` starts a new one in any case.

    `allow_unjudgeable` goes on with a problem on which a verdict says nothing.
    """

    spec: ProblemSpec
    settings: EvaluatorSettings
    limits: Limits
    source: ModelSource
    runs: Path
    run_dir: Path | None = None
    fresh: bool = False
    allow_unjudgeable: bool = False


@dataclass(frozen=True)
class Solved:
    """A finished run. `already` is True if it had finished before this command."""

    folder: Path
    result: RunResult
    already: bool = False


def run_problem(request: Request, progress: Progress) -> Solved:
    """Solve one problem from its beginning or from where an earlier process stopped.

    Raises `Abandoned` (resumable), `Stop` if interrupted before there was a run, ProblemError, TranscriptError, and
    KeyboardInterrupt on the second Ctrl-C.
    """
    config = RunConfig.resolve(request.spec, request.source.label, request.settings)
    with ExitStack() as stack:
        interrupts = stack.enter_context(Interrupts(progress.interrupted))
        stack.enter_context(progress)
        interrupts.immediately = True
        folder, state, run = None, None, None
        path = _run_to_take_up(request, config)
        if path is not None:
            folder = stack.enter_context(RunFolder.open(path))
            state = restore(path)
            if state.finished is not None and state.finished.reason not in RESUMABLE:
                return Solved(path, RunResult.model_validate(state.finished.result), already=True)
            progress.opening(f"Going on with {path} after turn {state.turns}")
        client = request.source.open(progress)
        stack.callback(client.close)
        if folder is None:
            progress.opening(f"{config.problem} ({config.size} size, {config.device}), model {config.model}")
        evaluator = stack.enter_context(Evaluator(request.spec, request.settings))
        try:
            if not request.allow_unjudgeable:
                _refuse_unjudgeable(evaluator, state, config, progress)
            facts = _facts(evaluator, state)
            if folder is None or state is None:
                folder = stack.enter_context(RunFolder.create(request.runs, _started(config, facts)))
                state = restore(folder.path)
                progress.line(f"Run folder: {folder.path}")
            else:
                folder.append(Resumed())
            progress.facts(facts)
            run = Run(
                folder=folder,
                state=state,
                submitted=_submitted(folder.path),
                spec=request.spec,
                facts=facts,
                client=client,
                evaluator=evaluator,
                limits=request.limits,
                progress=progress,
                interrupts=interrupts,
                person=request.source.person,
            )
            interrupts.immediately = False
            return Solved(folder.path, solve(run))
        except EvaluatorError as error:
            if run is not None:
                run.note_error("evaluator", error)
            kept = f"\nThe run is kept in {folder.path}: the same command goes on from there." if folder else ""
            raise Abandoned(f"{error}{kept}") from error


def _run_to_take_up(request: Request, config: RunConfig) -> Path | None:
    if request.run_dir is not None:
        started = restore(request.run_dir).started
        stored = RunConfig.model_validate(started.config)
        different = [
            f"{name} was {getattr(stored, name)} and is {getattr(config, name)}"
            for name in RunConfig.model_fields
            if getattr(stored, name) != getattr(config, name)
        ]
        if different:
            raise TranscriptError(
                f"{request.run_dir} is the run of another command ({'; '.join(different)}). "
                "Leave --run-dir out to start a new run."
            )
        return request.run_dir
    if request.fresh:
        return None
    found = find_unfinished(request.runs, config.model_dump(mode="json"))
    return None if found is None or is_live(found) else found


def _facts(evaluator: Evaluator, state: RestoredRun | None) -> ProblemFacts:
    """Measured once per run: what the model was told at its beginning stays true of what it is told later."""
    if state is not None and state.facts is not None:
        return ProblemFacts.model_validate(state.facts)
    return evaluator.facts()


def _refuse_unjudgeable(evaluator: Evaluator, state: RestoredRun | None, config: RunConfig, progress: Progress) -> None:
    """Raise ProblemError, before anything is timed or asked, when a verdict on the problem says nothing."""
    if state is not None and state.facts is not None:
        return
    soundness = evaluator.soundness()
    if soundness.judgeable:
        return
    progress.notes(soundness.notes)
    other = (
        "other inputs and weights were tried in vain"
        if config.repair_inputs
        else "--repair-inputs looks for inputs and weights under which they do"
    )
    raise ProblemError(
        f"Verdicts on {config.problem} say nothing, for the reasons above, so no model was asked: {other}; "
        "--allow-unjudgeable goes on all the same; or change the problem."
    )


def _started(config: RunConfig, facts: ProblemFacts) -> RunStarted:
    return RunStarted(
        problem=config.problem,
        model=config.model,
        config=config.model_dump(mode="json"),
        versions={name: _version(name) for name in ("kernel-agent", "torch")} | {"python": platform.python_version()},
        device=as_json(facts.device),
        sandbox=facts.evidence.sandbox.value,
    )


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"  # run from a checkout


def _submitted(run: Path) -> bool:
    """True if the last tool call of a run was a successful submit, after which the process died."""
    results = [event for event in read_events(run) if isinstance(event, ToolResult)]
    return bool(results) and results[-1].record.get("kind") == "submitted"
