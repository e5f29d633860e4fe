"""Problems on which a verdict says nothing are told, with the reason, and repaired where other values help."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator

import pytest
import soundness_problems as problems
import torch

from problems import ProblemError, bundled_names, load_problem
from tools.device.floor import problem_cost
from tools.judge import bench as bench_module
from tools.judge import preflight, reference, self_agreement, soundness
from tools.judge.bench import Bench
from tools.judge.check import Rules
from tools.judge.repair import repair
from tools.judge.weights import vary_constants
from tools.types import Finding, Soundness
from tools.worker.trees import unflatten

Make = Callable[[str], Bench]
ORACLE, PLAIN = Rules(), Rules(allclose=(1e-4, 1e-4))


@pytest.fixture
def make() -> Iterator[Make]:
    """Sets a problem up as the judge does, with the accumulation allowance of its longest sum."""
    made: list[Bench] = []

    def set_up(source: str, size: str = "full") -> Bench:
        bench = Bench(source, size, "cpu")
        made.append(bench)
        trial = bench.trial("own", 0)
        bench.set_reduction(problem_cost(bench.model, list(unflatten(trial.spec, trial.tensors))).reduction_length)
        return bench

    yield set_up
    for bench in made:
        bench.close()


def named(found: Soundness, code: str) -> Finding:
    (note,) = [n for n in found.notes if n.code == code]
    return note


@pytest.mark.slow
@pytest.mark.parametrize("name", bundled_names())
def test_every_bundled_problem_can_be_judged(make: Make, name: str):
    found = soundness.examine(make(load_problem(name).source, "small"), ORACLE)  # pyright: ignore[reportCallIssue]
    assert found.judgeable
    # The mean of many draws hardly varies: a constant passes for it here and there, and other inputs tell.
    allowed = {"plain_allclose_blind", "reference_state"} | (
        {"constant_passes"} if name == "basics/mse_loss" else set()
    )
    assert {n.code for n in found.notes} <= allowed


@pytest.mark.parametrize(
    ("problem", "code"),
    [
        ("MEAN_OF_SOFTMAX", "zeros_pass"),
        ("ILL_CONDITIONED", "zeros_pass"),
        ("ONE_CLASS", "constant_passes"),
        ("ALWAYS_SATURATED", "constant_passes"),
        ("ALL_NAN", "constant_passes"),
        ("ONLY_WEIGHTS", "input_independent"),
        ("HARDLY_A_CHANGE", "input_passes"),
        ("OVERFLOW_ON_THE_WAY", "reference_not_finite"),
        ("OTHER_GENERATOR", "reference_nondeterministic"),
        ("COUNTER", "reference_nondeterministic"),
        ("UNSEEDED_CONSTRUCTION", "reference_nondeterministic"),
        ("EMPTY", "no_output"),
    ],
)
def test_a_problem_on_which_a_verdict_says_nothing_is_told_with_the_reason(make: Make, problem: str, code: str):
    found = soundness.examine(make(getattr(problems, problem)), ORACLE)
    assert not found.judgeable
    assert [n.code for n in found.notes if n.severity == "error"] == [code]


@pytest.mark.parametrize(
    ("problem", "code", "severity"),
    [
        ("CONSTANT_INPUT", "input_independent", "warning"),
        ("SATURATED", "constant_passes", "warning"),
        ("SCALAR_BF16", "constant_passes", "warning"),
        ("ONE_OF_TWO", "zeros_pass", "warning"),
        ("PREDICATES", "constant_passes", "warning"),
        ("SOME_NAN", "reference_not_finite", "warning"),
        ("OVERFLOW", "reference_not_finite", "warning"),
        ("WEIGHTS_LOST", "weights_irrelevant", "warning"),
        ("WEIGHTS_UNUSED", "weights_irrelevant", "warning"),
        ("BIAS_BEFORE_NORM", "weights_without_effect", "note"),
        ("TORCH_RANDOM", "reference_random", "note"),
    ],
)
def test_what_a_check_can_still_tell_is_a_label_and_no_refusal(make: Make, problem: str, code: str, severity: str):
    found = soundness.examine(make(getattr(problems, problem)), ORACLE)
    assert found.judgeable
    assert named(found, code).severity == severity


def test_a_sound_problem_has_nothing_said_of_it(make: Make):
    for source in (problems.SOUND, problems.WEIGHTS_OF_ONE):
        assert soundness.examine(make(source), ORACLE).notes == []


def test_what_tells_an_answer_without_work_apart_is_named(make: Make):
    note = named(soundness.examine(make(problems.SATURATED), ORACLE), "constant_passes")
    assert note.observed["caught_by"] == ["scaled down"]
    assert "scaled down" in note.summary


def test_the_plain_rule_is_blind_where_the_oracle_is_not(make: Make):
    """`SATURATED` is told by other inputs only, which the plain rule does not try; NaN never equals NaN there."""
    saturated, nan = (soundness.examine(make(p), PLAIN) for p in (problems.SATURATED, problems.SOME_NAN))
    assert (saturated.judgeable, nan.judgeable) == (False, False)
    assert named(saturated, "constant_passes").severity == "error"
    assert named(nan, "reference_not_finite").severity == "error"
    small = problems.problem("torch.softmax(x, dim=1) * 0.01")
    found = soundness.examine(make(small), ORACLE)
    assert found.judgeable
    assert named(found, "plain_allclose_blind").observed["tolerance"] == 1e-2


@pytest.mark.parametrize("problem", ["TORCH_RANDOM", "PYTHON_RANDOM", "NUMPY_RANDOM"])
def test_random_draws_in_forward_are_reseeded_so_that_zeros_do_not_pass(make: Make, problem: str):
    bench = make(getattr(problems, problem))
    assert soundness.examine(bench, ORACLE).judgeable
    assert bench.uses_rng
    assert bench.floor.rms == 0.0


@pytest.mark.parametrize(
    ("problem", "words"),
    [
        ("SATURATED", "100 times smaller"),
        ("OVERFLOW", "100 times smaller"),
        ("CONSTANT_INPUT", "in place of constant inputs"),
        ("SOME_NAN", "between 0.01 and 0.99"),
        ("ZERO_WEIGHTS", "normally distributed weights"),
    ],
)
def test_a_problem_is_repaired_by_values_of_another_scale(make: Make, problem: str, words: str):
    bench = make(getattr(problems, problem))
    before = bench.trial("own", 0)
    found, note = repair(bench, ORACLE)
    assert found.judgeable
    assert all(n.severity == "note" for n in found.notes)
    assert note is not None and words in note.summary
    assert words in named(found, "inputs_repaired").summary
    after = bench.trial("own", 0)
    assert [(t.shape, t.dtype, t.stride()) for t in after.tensors] == [
        (t.shape, t.dtype, t.stride()) for t in before.tensors
    ]
    changed = before.tensors + before.reference, after.tensors + after.reference
    assert not all(torch.equal(a, b) for a, b in zip(*changed, strict=True))
    # The shared buffers, from which candidates get their weights, hold those of the repaired problem.
    for name, value in bench.model.state_dict().items():
        assert torch.equal(value, bench_module.tensor_at(bench.arenas["weights"], bench.weight_places[name]))


@pytest.mark.parametrize("problem", ["MEAN_OF_SOFTMAX", "ONE_OF_TWO", "UNSEEDED_CONSTRUCTION"])
def test_what_no_values_can_mend_stays_as_it_is_and_says_so(make: Make, problem: str):
    bench = make(getattr(problems, problem))
    before = bench.trial("own", 0).tensors[0]
    found, note = repair(bench, ORACLE)
    assert note is None
    assert named(found, "not_repaired").severity == "note"
    assert torch.equal(bench.trial("own", 0).tensors[0], before)


def test_a_sound_problem_is_left_alone(make: Make):
    bench = make(problems.SOUND)
    assert repair(bench, ORACLE) == (Soundness(judgeable=True), None)
    assert bench.problem.repair is None


def test_sizes_are_known_before_anything_is_allocated():
    sizes = preflight.estimate(
        problems.problem("self.linear(x).half()", init="self.linear = nn.Linear(64, 64)"), "full"
    )
    assert sizes is not None
    assert (sizes.inputs, sizes.outputs, sizes.weights) == (128 * 64 * 4, 128 * 64 * 2, 64 * 65 * 4)
    assert (sizes.inputs64, sizes.outputs64, sizes.weights64) == (128 * 64 * 8, 128 * 64 * 8, 64 * 65 * 8)
    assert preflight.estimate(problems.problem("x", inputs="torch.ones(1).fill_(torch.ones(1).item())"), "full") is None


def test_finding_out_sizes_leaves_nothing_behind():
    """A cache that the problem keeps in its module must not hold tensors without data."""
    source = problems.problem("x * table(x)") + "\nkept = []\n\ndef table(x):\n    kept.append(x)\n    return kept[0]\n"
    bench = Bench(source, "full", "cpu")
    assert bench.trial("own", 0).reference[0].device.type == "cpu"
    bench.close()


def test_a_problem_larger_than_the_device_is_refused_with_the_numbers_and_the_next_step():
    with pytest.raises(ProblemError, match=r"at least 60 TiB and [\d.]+ GiB are free .*inputs 4 TiB.* define SMALL"):
        Bench(problems.TOO_LARGE, "full", "cpu")
    shrinkable = problems.TOO_LARGE + '\nSMALL = {"n": 8}\n'
    with pytest.raises(ProblemError, match="run it with --size small, or use a device"):
        Bench(shrinkable, "full", "cpu")
    Bench(shrinkable, "small", "cpu").close()


def test_inputs_that_take_for_ever_to_draw_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(reference, "DRAW_SECONDS", 0.2)
    monkeypatch.setattr(preflight, "ESTIMATE_SECONDS", 0.2)
    with pytest.raises(ProblemError, match=r"get_inputs\(\) takes longer than .*--size small"):
        Bench(problems.SLOW_TO_DRAW, "full", "cpu")


def test_a_forward_that_takes_for_ever_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench_module, "FORWARD_SECONDS", 0.2)
    monkeypatch.setattr(preflight, "ESTIMATE_SECONDS", 0.2)
    with pytest.raises(ProblemError, match="one forward of the reference takes longer than"):
        Bench(problems.problem("[x for _ in iter(int, 1)]"), "full", "cpu")


def test_a_reference_that_takes_too_long_for_a_check_can_not_be_judged(make: Make, monkeypatch: pytest.MonkeyPatch):
    bench = make(problems.SOUND)
    monkeypatch.setattr(self_agreement, "SLOW_FORWARD_SECONDS", 0.0)
    found = soundness.examine(bench, ORACLE)
    assert not found.judgeable
    assert "--size small" in named(found, "reference_too_slow").summary


def test_only_weights_that_every_construction_makes_the_same_are_varied():
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.norm = torch.nn.BatchNorm1d(8)
            self.linear = torch.nn.Linear(8, 8)
            self.frozen = torch.nn.Parameter(torch.ones(8), requires_grad=False)

    first, second = Model(), Model()
    before = {name: value.clone() for name, value in second.state_dict().items()}
    vary_constants(second, first, secrets.randbits(31))
    changed = {name for name, value in second.state_dict().items() if not torch.equal(value, before[name])}
    assert changed == {"norm.weight", "norm.bias"}
    assert (second.norm.weight > 0).all()
