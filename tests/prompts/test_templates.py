"""Every text for the model, rendered from real records."""

from pathlib import Path
from typing import Any

import jinja2
import pytest

import prompts
from problems import load_problem
from prompts import render
from tools.candidates import CandidateState
from tools.reports import KernelReport, Submitted
from tools.types import (
    BuildResult,
    BuiltModule,
    CorrectnessResult,
    DeviceInfo,
    Diagnostic,
    Evidence,
    Finding,
    Interval,
    KernelResources,
    PrecisionClass,
    PrecisionReport,
    ProblemFacts,
    SandboxLevel,
    SpeedClaim,
    TimingResult,
    TrialResult,
    Verdict,
    WorstElement,
)

TEMPLATES = sorted(path.stem for path in Path(prompts.__file__).parent.glob("*.j2"))
GPU = DeviceInfo(
    kind="cuda",
    name="NVIDIA H200",
    driver="580.159.04",
    arch="sm_90a",
    multiprocessors=132,
    memory_bytes=139 << 30,
    l2_bytes=50 << 20,
    shared_per_block=232448,
    shared_per_multiprocessor=233472,
    registers_per_multiprocessor=65536,
    warp_size=32,
    peak_bandwidth=4.8e12,
    measured_bandwidth=4.27e12,
    peak_flops={"tf32": 4.94e14, "fp32": 6.7e13},
    measured_flops={"tf32": 4.0e14},
)
CPU = DeviceInfo(kind="cpu", name="a processor", cores=2, memory_bytes=8 << 30, simd="avx2", measured_bandwidth=1e10)
EVIDENCE = Evidence(
    device="cpu",
    device_name="a processor",
    torch_version="2.13.0",
    sandbox=SandboxLevel.NAMESPACES,
    date="2026-01-01",
    threads=2,
)


def facts(device: DeviceInfo, **more: Any) -> ProblemFacts:
    fields: dict[str, Any] = {
        "device": device,
        "inputs": ["x: float32[16, 64, 1024, 1024]"],
        "outputs": ["float32[16, 128, 1024, 1024]"],
        "parameters": ["conv.weight: float32[128, 64, 1, 1]"],
        "reference_precision": PrecisionClass.TF32,
        "bytes_moved": 12_900_000_000,
        "flops": 2.75e11,
        "floor_us": 3020.0,
        "floor_limited_by": "memory",
        "largest_speedup": 1.17,
        "baselines_us": {"eager": 3540.0, "compile": 10350.0},
        "evidence": EVIDENCE,
    }
    return ProblemFacts(**(fields | more))


def problem(found: ProblemFacts, **more: Any) -> str:
    options: dict[str, Any] = {"size": "full", "rule": "oracle", "precision": None, "require_own_kernels": None}
    return render("problem", spec=load_problem("pointwise_conv"), facts=found, **(options | more))


def test_a_missing_value_is_an_error_and_not_a_hole():
    with pytest.raises(jinja2.UndefinedError):
        render("problem")


@pytest.mark.parametrize("name", TEMPLATES)
def test_every_template_compiles(name: str):
    prompts._environment().get_template(f"{name}.j2")


def test_the_problem_says_what_earlier_agents_had_to_guess():
    text = problem(facts(GPU))
    for expected in (
        "class Model(nn.Module)",  # the problem itself
        "fp64",  # the oracle
        "TF32",  # how the reference runs
        "those of the same name",  # weights are copied by name …
        "seeding",  # … after construction that is seeded alike
        "Only these shapes",
        "132 SMs",
        "227 KiB per block",
        "228 KiB per SM",
        "65536 32-bit registers",
        "L2 cache 50 MiB",
        "4.27 TB/s",
        "4.8 TB/s",
        "400 TFLOP/s",
        "12.9 GB",
        "275 GFLOP",
        "3.02 ms",
        "reference, eager: 3.54 ms",
        "reference, compile: 10.3 ms",
        "1.17×",
    ):
        assert expected in text


def test_a_reference_that_is_not_in_tf32_is_said_to_be_so_on_a_gpu_only():
    assert "does not run in TF32" in problem(facts(GPU, reference_precision=PrecisionClass.FP32))
    assert "TF32" not in problem(facts(CPU, reference_precision=PrecisionClass.FP32))


def test_nothing_is_said_of_what_was_not_measured():
    bare = DeviceInfo(kind="cuda", name="a GPU", memory_bytes=1 << 30)
    text = problem(facts(bare, baselines_us={}, largest_speedup=None, parameters=[]))
    assert "None" not in text
    assert "SMs" not in text
    assert "bandwidth" not in text
    assert "reference, " not in text
    assert "those of the same name" not in text


def test_the_small_size_is_announced():
    assert "small size" in problem(facts(CPU), size="small")
    assert "small size" not in problem(facts(CPU))


def test_the_rules_of_a_run_are_told():
    assert "allclose" in problem(facts(GPU), rule="kernelbench")
    assert "oracle" not in problem(facts(CPU, reference_precision=PrecisionClass.FP32), rule="kernelbench").lower()
    assert "precision class fp32" in problem(facts(GPU), precision=PrecisionClass.FP32)
    assert "At least 50%" in problem(facts(GPU), require_own_kernels=0.5)
    assert "At least" not in problem(facts(GPU))


def test_each_device_gets_an_example_of_its_own_language():
    assert "cuda_sources=" in render("system", device="cuda")
    assert "cuda_sources=" not in render("system", device="cpu")
    assert "cpp_sources=" in render("system", device="cpu")


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_the_example_is_python(device: str):
    text = render("system", device=device)
    compile(text.split("```python\n")[1].split("```")[0], "example", "exec")


def report(**fields: Any) -> str:
    defaults: dict[str, Any] = {"kernel": "k1", "asked": "time"}
    return render("kernel", report=KernelReport(**(defaults | fields)))


BUILT = BuildResult(ok=True, source_key="s", seconds=3.2)


def test_a_failed_build_is_told_with_place_line_and_hint():
    diagnostic = Diagnostic(
        severity="error",
        message="identifier 'blockIdy' is undefined",
        file="cuda_sources[0]",
        line=12,
        column=9,
        source_line="    int r = blockIdy.x;",
        hint="Did you mean blockIdx?",
        count=3,
    )
    build = BuildResult(
        ok=False,
        verdict=Verdict.COMPILE_ERROR,
        source_key="s",
        seconds=2.0,
        diagnostics=[diagnostic],
        added=["one line"],
    )
    text = report(verdict=Verdict.COMPILE_ERROR, build=build)
    for expected in (
        "compile_error",
        "cuda_sources[0]:12:9",
        "blockIdy",
        "int r = blockIdy.x;",
        "blockIdx?",
        "3 times",
    ):
        assert expected in text
    assert "one line" in text


def test_kernel_resources_are_told():
    kernel = KernelResources(
        name="f(float*)",
        mangled="_Z1fPf",
        arch="sm_90a",
        registers=96,
        spill_stores=8,
        spill_loads=16,
        static_shared=49152,
    )
    module = BuiltModule(
        name="m",
        library="/nowhere.so",
        functions=["f"],
        route="fast",
        key="k",
        seconds=1,
        cached=False,
        kernels=[kernel],
    )
    text = report(build=BUILT.model_copy(update={"modules": [module]}), asked="build")
    assert "96 registers" in text
    assert "spills" in text
    assert "48 KiB" in text
    assert "not checked yet" in text


def wrong(*findings: Finding) -> CorrectnessResult:
    trial = TrialResult(
        kind="own",
        passed=False,
        wrong=1000,
        elements=4000,
        worst=WorstElement(output=0, index=[3, 7], candidate=float("nan"), reference=1.25, oracle=1.2500001),
    )
    return CorrectnessResult(
        verdict=Verdict.WRONG_RESULT, trials=[trial], findings=list(findings), seconds=1, evidence=EVIDENCE
    )


def test_a_wrong_result_is_told_with_share_place_and_values():
    finding = Finding(
        code="tile_tail", summary="All wrong elements have index 1 >= 96.", observed={"axis": 1, "from": 96}
    )
    text = report(verdict=Verdict.WRONG_RESULT, build=BUILT, correctness=wrong(finding))
    for expected in (
        "wrong_result",
        "1000 of 4000",
        "25%",
        "index [3, 7]",
        "nan",
        "1.2500001",
        "index 1 >= 96",
        "from = 96",
    ):
        assert expected in text
    assert "bound check" in text


def test_what_findings_in_a_row_have_in_common_is_said_once():
    buffers = [
        Finding(code="state_not_updated", summary=f"leaves the buffer {name} as it was") for name in ("mean", "var")
    ]
    text = report(verdict=Verdict.WRONG_RESULT, build=BUILT, correctness=wrong(*buffers))
    assert "buffer mean" in text
    assert text.index("buffer var") < text.index("ModelNew stands in for Model")
    assert text.count("ModelNew stands in for Model") == 1


def test_an_unknown_finding_is_told_by_its_own_summary():
    text = report(
        verdict=Verdict.WRONG_RESULT,
        build=BUILT,
        correctness=wrong(Finding(code="brand_new_code", summary="Something that was never seen.")),
    )
    assert "Something that was never seen." in text


def timing(**more: Any) -> TimingResult:
    fields: dict[str, Any] = {
        "candidate_us": Interval(value=1000, low=990, high=1010),
        "reference_us": Interval(value=1420, low=1410, high=1430),
        "speedup": Interval(value=1.42, low=1.4, high=1.44),
        "claim": SpeedClaim.FASTER,
        "null_spread": 0.01,
        "samples": 50,
        "method": "interleaved pairs",
        "seconds": 2.0,
        "evidence": EVIDENCE,
    }
    return TimingResult(**(fields | more))


CORRECT = CorrectnessResult(
    verdict=Verdict.CORRECT,
    trials=[TrialResult(kind="own", passed=True)] * 5,
    precision=PrecisionReport(
        measured=PrecisionClass.FP32,
        reference=PrecisionClass.TF32,
        candidate_rms=4.7e-8,
        reference_rms=8.68e-5,
        floor_rms=4.0e-8,
        limit_rms=1.0e-4,
        candidate_max=6.3e-7,
        limit_max=6e-4,
        oracle="fp64",
    ),
    seconds=1,
    evidence=EVIDENCE,
)


def test_a_timed_candidate_is_told_with_interval_floor_and_baselines():
    text = report(
        verdict=Verdict.CORRECT,
        build=BUILT,
        correctness=CORRECT,
        leads=True,
        timing=timing(
            floor_us=800.0,
            floor_limited_by="memory",
            fraction_of_floor=0.8,
            baselines_us={"eager": 1420.0, "compile": 1200.0},
            best_baseline="compile",
            speedup_over_best=1.2,
            speedup_over_best_low=1.18,
            speedup_over_best_high=1.23,
        ),
    )
    for expected in ("1.42×", "1.4 to 1.44", "1 ms", "1.42 ms", "50 pairs", "±1%", "800 µs", "80%", "1.18 to 1.23"):
        assert expected in text
    assert "fastest correct candidate so far" in text


@pytest.mark.parametrize("host_us", [None, 12.0])
def test_what_calls_in_a_row_take_is_told_beside_single_ones(host_us: float | None):
    rows = timing(in_a_row_us=900.0, reference_in_a_row_us=1300.0, host_overhead_us=host_us)
    text = report(verdict=Verdict.CORRECT, build=BUILT, correctness=CORRECT, timing=rows)
    how = " and all launched ahead" if host_us else ""
    assert f"\n- in a row of calls, each on inputs of its own{how}: yours 900 µs, reference 1.3 ms\n" in text
    assert ("\n- time on the host before the work is launched: 12 µs\n" in text) == (host_us is not None)
    assert "\n\n\n" not in text


def test_eager_alone_is_not_called_the_best_baseline():
    alone = timing(baselines_us={"eager": 1420.0}, best_baseline="eager", speedup_over_best=1.42)
    text = report(verdict=Verdict.CORRECT, build=BUILT, correctness=CORRECT, timing=alone)
    assert "Speed-up over the reference (eager): 1.42×" in text
    assert "- eager: 1.42 ms" in text
    assert "best" not in text


@pytest.mark.parametrize(
    ("baselines", "said"),
    [
        ({"eager": 900.0}, "1.17× as fast as the reference, eager\n"),
        (
            {"eager": 900.0, "compile": 800.0, "eager_tf32": 300.0},
            "1.17× as fast as the best baseline of the precision asked for, compile\n",
        ),
    ],
)
def test_the_largest_speedup_is_told_over_what_was_timed(baselines: dict[str, float], said: str):
    text = problem(facts(GPU, baselines_us=baselines, best_baseline="compile" if len(baselines) > 1 else "eager"))
    assert said in text
    assert ("eager_tf32, with TF32 allowed: 300 µs" in text) == (len(baselines) > 1)


def test_a_difference_within_the_noise_is_not_called_one():
    text = report(
        verdict=Verdict.CORRECT, build=BUILT, correctness=CORRECT, timing=timing(claim=SpeedClaim.INDISTINGUISHABLE)
    )
    assert "no difference that can be told from noise" in text


def test_a_repeated_source_is_told_that_nothing_ran():
    assert "Nothing ran" in report(verdict=Verdict.CORRECT, build=BUILT, correctness=CORRECT, repeated=True)


def test_a_judge_error_is_not_blamed_on_the_candidate():
    ours = CorrectnessResult(verdict=Verdict.JUDGE_ERROR, seconds=1, evidence=EVIDENCE)
    assert "not counted against it" in report(verdict=Verdict.JUDGE_ERROR, build=BUILT, correctness=ours)


def status(**more: Any) -> str:
    fields: dict[str, Any] = {"best": None, "turns_left": 5, "minutes_left": None, "cost_left": None}
    return render("status", **(fields | more))


def test_the_status_line_tells_what_is_left_and_what_leads():
    best = CandidateState(id="k3", build=BUILT, correctness=CORRECT, timing=timing())
    assert status() == "[No correct candidate yet. Left: 5 turns.]\n"
    text = status(best=best, minutes_left=12.34, cost_left=0.5)
    assert "k3, 1.42×" in text
    assert "12 minutes" in text
    assert "0.5 USD" in text


def test_the_last_turn_is_announced_on_the_last_turn_only():
    assert "last turn" in status(turns_left=1)
    assert "last turn" not in status(turns_left=2)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"reason": "empty"}, "empty"),
        ({"reason": "cut_off"}, "cut off"),
        ({"reason": "no_tool_call"}, "calls no tool"),
        ({"reason": "no_tool_call", "has_code": True}, "as the argument `source`"),
        ({"reason": "no_tool_call", "in_a_row": 2}, "second such reply in a row"),
    ],
)
def test_a_nudge_says_why_and_what_to_write(fields: dict[str, Any], expected: str):
    text = render("nudge", **({"has_code": False, "best": None, "in_a_row": 1, "limit": 3} | fields))
    assert expected in text
    assert "evaluate_kernel" in text


def test_submitting_a_slower_candidate_names_the_faster_one():
    assert "k2 is faster" in render("submitted", report=Submitted(kernel="k1", fastest="k2"))
    assert "faster" not in render("submitted", report=Submitted(kernel="k1", fastest=None))
