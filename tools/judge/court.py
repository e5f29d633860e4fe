"""Requests to the judge: facts of the problem, a candidate's check, a candidate's timing."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

from tools.device.environment import evidence
from tools.device.floor import Floor, ProblemCost, floor, problem_cost
from tools.device.info import device_info
from tools.device.nvml import throttle_state
from tools.device.rates import with_rates
from tools.judge import passes
from tools.judge.baselines import Baseline, Baselines, best
from tools.judge.bench import Bench
from tools.judge.check import Check, Outcome, Rules
from tools.judge.client import Worker
from tools.judge.crew import Crew
from tools.judge.duel import Measured, duel
from tools.judge.failures import CandidateFailed, ReferenceFailed
from tools.judge.findings import observe
from tools.judge.inputs import OWN
from tools.judge.limits import classify
from tools.judge.module_state import steady
from tools.judge.records import precision_report, timing_result
from tools.judge.repair import repair
from tools.judge.session import Program, Session
from tools.judge.soundness import examine
from tools.judge.sweep import Sweep
from tools.nursery import Nursery
from tools.types import (
    CorrectnessResult,
    Evidence,
    Finding,
    PrecisionClass,
    ProblemFacts,
    Soundness,
    Verdict,
)
from tools.worker.trees import flatten, unflatten

ALLCLOSE = (1e-4, 1e-4)


class Court:
    """Everything the judge's process holds. Raises ProblemError when the problem can't be judged on this device."""

    def __init__(self, nursery: Nursery, args: dict[str, Any]) -> None:
        self.nursery = nursery
        self.device: Literal["cuda", "cpu"] = args["device"]
        self.cache_dir = Path(args["cache_dir"])
        self.compiler: str | None = args.get("compiler")
        passes.load(args.get("passes"))
        self.rules = Rules(
            demanded=PrecisionClass(args["precision"]) if args.get("precision") else None,
            allclose=ALLCLOSE if args["rule"] == "kernelbench" else None,
            require_own_kernels=args.get("require_own_kernels"),
        )
        self.compile_baselines = bool(args["compile_baselines"])
        self.autotune_baseline = bool(args.get("autotune_baseline"))
        self.source: str = args["source"]
        self.bench = Bench(self.source, args["size"], self.device)
        self._later: list[Callable[[], None]] = []
        self.info = with_rates(device_info(self.device), self.cache_dir)
        self.crew = Crew(nursery, self.bench, args)
        self.crew.refill()  # they start while the problem is looked at
        self.cost = self._cost()
        self.bench.set_reduction(self.cost.reduction_length)
        self._soundness: Soundness | None = None
        self._repaired: list[Finding] = []
        """What is said of every result when the problem has other inputs than its own."""

        if args.get("repair_inputs"):
            self._soundness, note = repair(self.bench, self.rules)
            self._repaired = [note] if note else []
        self.floor: Floor = floor(self.cost, self.info)
        self._baselines: Baselines | None = None

    def describe(self) -> dict[str, Any]:
        """What the evaluator needs before it can build: the constructor's arguments, where they are plain."""
        spec, tensors = flatten(self.bench.problem.init_args)
        return {"init_args": None if tensors else unflatten(spec, [])}

    def do_facts(self) -> dict[str, Any]:
        """`ProblemFacts`: shapes, costs, the floor, and what the reference and its compiled forms take here."""
        trial, bench, soundness = self.bench.trial(OWN, 0), self.bench, self._judgeability()
        baselines = self._timed_baselines()
        self._later.append(self.crew.rest)
        compared = best(baselines, self.rules.demanded)
        fastest = baselines[compared].us if compared else 0.0
        facts = ProblemFacts(
            device=self.info,
            inputs=[_describe(t) for t in trial.tensors],
            outputs=[_describe(t) for t in trial.reference],
            parameters=[f"{name}: {_describe(v)}" for name, v in bench.model.state_dict().items()],
            reference_precision=classify(max(e.relative for e in trial.errors), bench.floor, trial.reference[0].dtype),
            bytes_moved=self.cost.bytes_moved,
            flops=self.cost.flops,
            floor_us=self.floor.us,
            floor_limited_by=self.floor.limited_by,
            largest_speedup=fastest / self.floor.us if self.floor.us and fastest and not self.floor.cached else None,
            baselines_us={name: baseline.us for name, baseline in baselines.items()},
            best_baseline=compared,
            judgeable=soundness.judgeable,
            judge_notes=soundness.notes,
            evidence=self._evidence(),
        )
        return facts.model_dump(mode="json")

    def do_soundness(self) -> dict[str, Any]:
        """`Soundness`: whether a verdict on this problem says anything. Nothing is timed."""
        return self._judgeability().model_dump(mode="json")

    def do_check(self, source: str, modules: list[dict[str, str]], kernels: list[str]) -> dict[str, Any]:
        """`CorrectnessResult` of a candidate."""
        began = time.monotonic()
        session = self.crew.session(Program(source, modules, kernels=frozenset(kernels)), guarded=True)
        try:
            outcome = Check(self.bench, session, self.rules).run()
        finally:
            session.worker.close()
        if outcome.verdict is not Verdict.CORRECT or self.crew.short:
            # A correct one is timed next, and nothing may start on the device meanwhile: timing refills.
            self._later.append(self.crew.refill)
        return self._correctness(outcome, time.monotonic() - began).model_dump(mode="json")

    def do_time(
        self, source: str, modules: list[dict[str, str]], kernels: list[str], thorough: bool = False
    ) -> dict[str, Any]:
        """`{"timing": TimingResult}`, or `{"correctness": CorrectnessResult}` when a timed call unmasks the
        candidate."""
        began = time.monotonic()
        program = Program(source, modules, kernels=frozenset(kernels))
        try:
            measured = self.duel(program, thorough=thorough)
        except CandidateFailed as failed:
            outcome = Outcome(verdict=failed.verdict, findings=[failed.finding])
            return {"correctness": self._correctness(outcome, time.monotonic() - began).model_dump(mode="json")}
        except ReferenceFailed:
            self.crew.end_references()
            raise
        finally:
            self._later += [self.crew.refill, self.crew.rest]
        baselines = self._timed_baselines()
        seconds = time.monotonic() - began
        result = timing_result(
            measured,
            self.floor,
            baselines,
            best(baselines, self.rules.demanded),
            self.device,
            seconds,
            self._evidence(),
            self._repaired,
        )
        return {"timing": result.model_dump(mode="json")}

    def duel(self, program: Program, *, thorough: bool = False) -> Measured:
        """A program timed against the reference. Raises CandidateFailed when a timed call unmasks it."""
        Worker.settle()  # before anyone counts what memory is left
        return duel(
            self.bench,
            lambda: self.crew.session(program, guarded=False),
            self.references(),
            self.rules.demanded,
            throttle_state,
            thorough=thorough,
        )

    def do_sweep(self, variants: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """A `SweepRow` for each variant: checked lightly and timed as far as it kept up with the others."""
        programs = [Program(v["source"], v["modules"], kernels=frozenset(v["kernels"])) for v in variants]
        Worker.settle()
        reference, other = self.references()
        other.timed.rest()
        sweep = Sweep(self.bench, lambda p: self.crew.session(p, guarded=False), reference, self.rules, throttle_state)
        try:
            return [row.model_dump(mode="json") for row in sweep.run(programs)]
        except ReferenceFailed:
            self.crew.end_references()
            raise
        finally:
            self._later += [self.crew.refill, self.crew.rest]

    def do_fresh(self) -> dict[str, Any]:
        """New secret seeds from here on."""
        self.bench.refresh_seeds()
        return {}

    def afterwards(self) -> None:
        """What nobody has to wait for, once a request has been answered."""
        later, self._later = self._later, []
        for step in later:
            step()

    def close(self) -> None:
        """Kill every worker and release the shared buffers."""
        self.crew.close()
        self.bench.close()

    def _cost(self) -> ProblemCost:
        trial = self.bench.trial(OWN, 0)
        inputs = unflatten(trial.spec, trial.tensors)
        with steady(self.bench.model, self.bench.problem.changing, {}):
            return problem_cost(self.bench.model, list(inputs))

    def references(self) -> tuple[Session, Session]:
        """The reference in two processes."""
        return self.crew.references(Program(self.source, [], "Model", overrides=self.bench.problem.overrides))

    def _timed_baselines(self) -> dict[str, Baseline]:
        """Each baseline, timed once per run in the reference's process."""
        if self._baselines is None:
            kinds = ["eager"] + ["compile"] * self.compile_baselines + ["compile_max_autotune"] * self.autotune_baseline
            self._baselines = Baselines(self.bench, self.cache_dir, self.source, self.info, kinds)
        return self._baselines.timed(lambda: self.references()[0])

    def _judgeability(self) -> Soundness:
        if self._soundness is None:
            self._soundness = examine(self.bench, self.rules)
        return self._soundness

    def _caveats(self, verdict: Verdict) -> list[Finding]:
        """What goes with a result: other inputs than the problem's own, and a `correct` that says nothing."""
        if verdict is not Verdict.CORRECT or self._judgeability().judgeable:
            return self._repaired
        summary = "this problem can't be judged: `correct` says nothing here (`agent problems check` says why)"
        return [*self._repaired, observe("unjudgeable", summary, "warning")]

    def _evidence(self) -> Evidence:
        return evidence(self.device, sandbox=self.nursery.level, compiler=self.compiler)

    def _correctness(self, outcome: Outcome, seconds: float) -> CorrectnessResult:
        assert outcome.verdict is not None
        return CorrectnessResult(
            verdict=outcome.verdict,
            trials=outcome.trials,
            precision=precision_report(self.bench, self.rules, outcome),
            findings=outcome.findings + self._caveats(outcome.verdict),
            weights=outcome.weights,
            own_kernel_share=outcome.own_share,
            seconds=seconds,
            evidence=self._evidence(),
        )


def _describe(tensor: Any) -> str:
    shape = ", ".join(str(n) for n in tensor.shape)
    text = f"{str(tensor.dtype).removeprefix('torch.')}[{shape}]"
    return text if tensor.is_contiguous() else f"{text} with strides {list(tensor.stride())}"
